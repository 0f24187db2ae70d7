"""Words over the control socket, and what they do to the session."""

from deploytui.errors import SessionError
from deploytui.record.events import Asked
from deploytui.run.context import Context
from deploytui.run.recorder import now_ns
from deploytui.session.control import Reply, Request
from deploytui.session.control_server import serve_control


async def serve_words(ctx: Context) -> None:
    """Answer the socket until cancelled; a session without one is measured all the same."""
    try:
        await serve_control(ctx.folder, lambda request: obey(ctx, request))
    except (SessionError, OSError) as error:
        why = error.text() if isinstance(error, SessionError) else str(error)
        ctx.note("warning", f"Nobody can skip, pause or cancel this session from the screen. {why}")


def obey(ctx: Context, request: Request) -> Reply:
    """Do what was asked, or say why not."""
    match request.word:
        case "cancel":
            ctx.halt.stop()
        case "kill":
            ctx.halt.hurry.set()
            ctx.halt.stop()
        case "skip":
            if request.candidate not in ctx.recorder.state.candidates:
                return Reply(ok=False, text=f"There is no candidate “{request.candidate}”.")
            ctx.halt.skip(request.candidate)
        case "pause":
            ctx.halt.pause()
        case "go_on":
            ctx.halt.go_on()
        case "status":
            return Reply(ok=True, text=ctx.halt.current or "")
    if request.word in ("skip", "cancel", "pause", "go_on"):
        ctx.recorder.say(Asked(at_ns=now_ns(), word=request.word, candidate=request.candidate))
    return Reply(ok=True, text="")
