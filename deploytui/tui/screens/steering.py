"""Steering the runner of a session: skip, cancel, pause, run again, detach, quit."""

from textual import work

from deploytui.errors import DeployError
from deploytui.session.control import Word, ask
from deploytui.tui.headline import session_name
from deploytui.tui.pieces import line
from deploytui.tui.plain import visible
from deploytui.tui.screens.asking import ask_and_start
from deploytui.tui.screens.modals import Ask, Choice, error_dialog
from deploytui.tui.screens.session import SessionScreen

STEERING = frozenset({"skip", "cancel", "detach", "pause"})
QUIT = (Choice("k", "keep running", "keep"), Choice("s", "stop it", "stop"))
SKIP = (Choice("x", "skip", "yes"),)
CANCEL = (Choice("X", "cancel the session", "yes"),)


class Steering(SessionScreen):
    """The words a user has for the runner; each is asked for first where it can't be taken back."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Words for the runner only while one listens; a new run only when none does."""
        if action in STEERING and not self.steerable:
            return False
        if action == "skip":
            return self.chosen is not None and self.chosen.phase != "done"
        if action == "again":
            return self.profile_path is not None and not self.steerable
        return super().check_action(action, parameters)

    @work(group="dialog")
    async def action_again(self) -> None:
        """Measure the session's profile again, only the marked candidates when there are some."""
        if self.profile_path is not None and self.standing is not None:
            note = "A new session; the results shown here stay as they are."
            name = session_name(self.standing)
            await ask_and_start(self, self.context, self.profile_path, name, self.marked, note)

    @work(group="dialog")
    async def action_skip(self) -> None:
        """Skip the selected candidate."""
        row = self.chosen
        if row is None:
            return
        kept = f"{len(row.repeats)} finished repeats are kept." if row.repeats else "It has no finished repeat yet."
        lines = [line(f"Skip {visible(row.name)}? {kept} The session goes on with the next candidate.")]
        if await self.app.push_screen_wait(Ask("Skip", lines, SKIP)):
            await self.say("skip", f"Skipping {row.name}.", row.name)

    @work(group="dialog")
    async def action_cancel(self) -> None:
        """End the session; what is finished is kept."""
        if await self.app.push_screen_wait(Ask("Cancel the session", [line(f"Stop measuring? {self.kept()}")], CANCEL)):
            await self.say("cancel", "The session is being stopped.")

    def kept(self) -> str:
        """What is kept when the session is stopped now."""
        rows = list(self.standing.state.candidates.values()) if self.standing else []
        done, repeats = sum(row.phase == "done" for row in rows), sum(len(row.repeats) for row in rows)
        return (
            f"{done} of {len(rows)} candidates are through and {repeats} finished repeats are on disk: they are kept. "
            "The repeat that runs is lost, engines are stopped, the GPUs are left as they were found."
        )

    @work(group="dialog")
    async def action_pause(self) -> None:
        """Pause before the next step, or go on."""
        paused = self.standing is not None and self.standing.state.paused
        await self.say(*(("go_on", "Going on.") if paused else ("pause", "Pausing before the next step.")))

    async def say(self, word: Word, done: str, candidate: str | None = None) -> bool:
        """Say a word to the runner and show what it answers; whether it obeys."""
        if self.folder is None:
            return False
        try:
            reply = await ask(self.folder, word, candidate)
        except DeployError as error:
            self.app.push_screen(error_dialog(error))
            return False
        self.notify(reply.text or done, severity="information" if reply.ok else "error", markup=False)
        return reply.ok

    def action_detach(self) -> None:
        """Leave the runner to itself."""
        self.app.exit(message=self.farewell())

    def farewell(self) -> str:
        """What the terminal says after the screen has left a running session."""
        return f"The session goes on. Back to it: deploytui attach {self.folder.id if self.folder else ''}"

    @work(group="dialog")
    async def action_leave(self) -> None:
        """Quit; while it measures, ask what becomes of the run."""
        if self.leaving or not self.steerable:
            self.app.exit()
            return
        lines = [
            line("A runner is measuring. It goes on without this screen, or it is stopped."),
            (),
            line(self.kept()),
        ]
        match await self.app.push_screen_wait(Ask("Quit while measuring", lines, QUIT, enter="keep")):
            case "keep":
                self.action_detach()
            case "stop":
                self.leaving = await self.say("cancel", "Stopping; the screen closes when all engines are gone.")
