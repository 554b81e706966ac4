"""How a script ends when it is stopped."""
import signal


def end_as_interrupted(*_):
    raise KeyboardInterrupt


def clean_up_on_sigterm():
    """SIGTERM ends the script as Ctrl-C does, so it removes its folders and stops its clusters."""
    signal.signal(signal.SIGTERM, end_as_interrupted)
