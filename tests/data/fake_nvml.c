/* A stand-in for libnvidia-ml.so.1. Its state is the text file that FAKE_NVML_STATE names, read again on each call:
   lines `<gpu> <key> <value>`, gpu -1 for the library itself, 32 + 8 * gpu + n for the n-th MIG slice of a gpu.
   `err_<call>` makes that call return an NVML error, `error` all calls on the device, `block_s` delays it.
   `pid0` to `pid7` are the processes on a device, `pid_memory0` to `pid_memory7` what each holds (-1: not told). */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int Result;
typedef struct Handle *Device;
typedef unsigned long long u64;
enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };

static int initialized;
static int index_of[128];

static long long value(int gpu, const char *key, long long unset) {
    const char *path = getenv("FAKE_NVML_STATE");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return unset;
    char line[256], name[64];
    int row;
    long long number;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%d %63s %lld", &row, name, &number) == 3 && row == gpu && !strcmp(name, key)) unset = number;
    fclose(file);
    return unset;
}

static Result enter(Device device, const char *call, int *gpu) {
    if (!initialized) return UNINITIALIZED;
    *gpu = *(int *)device;
    long long pause = value(*gpu, "block_s", 0);
    if (pause) sleep((unsigned)pause);
    Result all = (Result)value(*gpu, "error", 0);
    return all ? all : (Result)value(*gpu, call, 0);
}

static Device handle(int number) {
    index_of[number] = number;
    return (Device)&index_of[number];
}

static int count(void) { return (int)value(-1, "count", 1); }

Result nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    Result error = (Result)value(-1, "init_error", 0);
    if (!error) initialized++;
    return error;
}
Result nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
Result nvmlShutdown(void) {
    if (!initialized) return UNINITIALIZED;
    initialized--;
    return OK;
}
const char *nvmlErrorString(Result result) { (void)result; return "A driver error"; }
Result nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "580.95.05"); return OK; }
Result nvmlSystemGetCudaDriverVersion(int *version) { *version = 13000; return OK; }
Result nvmlDeviceGetCount_v2(unsigned *number) { *number = (unsigned)count(); return (Result)value(-1, "err_count", 0); }
Result nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
    if ((int)index >= count() || index > 31) return INVALID;
    *device = handle((int)index);
    return (Result)value((int)index, "err_handle", 0);
}
Result nvmlDeviceGetName(Device device, char *text, unsigned size) {
    int gpu; Result error = enter(device, "err_name", &gpu);
    if (!error) snprintf(text, size, gpu < 32 ? "NVIDIA H200" : "NVIDIA H200 MIG 1g.18gb");
    return error;
}
Result nvmlDeviceGetUUID(Device device, char *text, unsigned size) {
    int gpu; Result error = enter(device, "err_uuid", &gpu);
    if (!error) snprintf(text, size, gpu < 32 ? "GPU-%08d-0000-0000-0000-000000000000" : "MIG-%08d-1111-2222-3333-444444444444", gpu);
    return error;
}
typedef struct { u64 total, free, used; } Memory;
typedef struct { unsigned version; u64 total, reserved, free, used; } Memory2;
Result nvmlDeviceGetMemoryInfo(Device device, Memory *memory) {
    int gpu; Result error = enter(device, "err_memory1", &gpu);
    memory->total = (u64)value(gpu, "total", 80000);
    memory->used = (u64)value(gpu, "used", 0) + (u64)value(gpu, "reserved", 0);
    memory->free = memory->total - memory->used;
    return error;
}
Result nvmlDeviceGetMemoryInfo_v2(Device device, Memory2 *memory) {
    int gpu; Result error = enter(device, "err_memory2", &gpu);
    memory->total = (u64)value(gpu, "total", 80000);
    memory->used = (u64)value(gpu, "used", 0);
    memory->reserved = (u64)value(gpu, "reserved", 0);
    memory->free = memory->total - memory->used - memory->reserved;
    return error;
}
typedef struct { unsigned gpu, memory; } Utilization;
Result nvmlDeviceGetUtilizationRates(Device device, Utilization *rates) {
    int gpu; Result error = enter(device, "err_utilisation", &gpu);
    rates->gpu = (unsigned)value(gpu, "utilisation", 0);
    rates->memory = 0;
    return error;
}
Result nvmlDeviceGetTemperature(Device device, int sensor, unsigned *degrees) {
    (void)sensor;
    int gpu; Result error = enter(device, "err_temperature", &gpu);
    *degrees = (unsigned)value(gpu, "temperature", 35);
    return error;
}
Result nvmlDeviceGetPowerUsage(Device device, unsigned *milliwatts) {
    int gpu; Result error = enter(device, "err_power", &gpu);
    *milliwatts = (unsigned)value(gpu, "power_mw", 75000);
    return error;
}
Result nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned *milliwatts) {
    int gpu; Result error = enter(device, "err_limit", &gpu);
    *milliwatts = (unsigned)value(gpu, "limit_mw", 700000);
    return error;
}
Result nvmlDeviceGetCudaComputeCapability(Device device, int *major, int *minor) {
    int gpu; Result error = enter(device, "err_capability", &gpu);
    *major = (int)value(gpu, "major", 9);
    *minor = (int)value(gpu, "minor", 0);
    return error;
}
Result nvmlDeviceGetMigMode(Device device, unsigned *current, unsigned *pending) {
    int gpu; Result error = enter(device, "err_mig", &gpu);
    *current = *pending = (unsigned)value(gpu, "mig", 0);
    return error;
}
Result nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned *most) { (void)device; *most = 7; return OK; }
Result nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned place, Device *slice) {
    int gpu; Result error = enter(device, "err_slice", &gpu);
    if (!error && (long long)place >= value(gpu, "slices", 0)) error = NOT_FOUND;
    if (!error) *slice = handle(32 + 8 * gpu + (int)place);
    return error;
}
typedef struct { unsigned pid; u64 memory; unsigned instance, compute; } Process;
static Result processes(Device device, unsigned *room, Process *list, const char *call, const char *pids) {
    int gpu; Result error = enter(device, call, &gpu);
    unsigned found = 0;
    for (int place = 0; place < 8 && !error; place++) {
        char key[32], memory[32];
        snprintf(key, sizeof key, "%s%d", pids, place);
        snprintf(memory, sizeof memory, "pid_memory%d", place);
        long long pid = value(gpu, key, 0);
        if (!pid) continue;
        if (list && found < *room) list[found] = (Process){(unsigned)pid, (u64)value(gpu, memory, -1), ~0u, ~0u};
        found++;
    }
    if (!error && found > (list ? *room : 0)) error = 7;
    *room = found;
    return error;
}
Result nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned *room, Process *list) {
    return processes(device, room, list, "err_processes", "pid");
}
Result nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, unsigned *room, Process *list) {
    return processes(device, room, list, "err_graphics", "graphics_pid");
}
