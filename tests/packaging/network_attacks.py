"""Attacks on the network port of a node: malformed frames, and connections that end at any step.

It uses libzmq.so.5, which the server's package needs, through ctypes. So it needs no other package.
"""
import ctypes
import os
import pathlib
import random
import signal
import socket
import struct
import time
from dataclasses import dataclass

ZMQ_DEALER = 5
ZMQ_LINGER = 17
ZMQ_SNDTIMEO = 28
ZMQ_CURVE_PUBLICKEY = 48
ZMQ_CURVE_SECRETKEY = 49
ZMQ_CURVE_SERVERKEY = 50
ZMQ_DONTWAIT = 1
ZMQ_POLLIN = 1
WAIT_MS = 20_000
# Bytes 4 to 7 of each frame, and those of the greeting of ZMTP.
FILE_IDENTIFIER = b"ATN1"
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01CURVE" + bytes(48)
LONGEST_FRAME = 4_000
# The client opens its session with this many malformed frames unanswered at most.
UNANSWERED = 64


@dataclass
class Target:
    host: str
    port: int
    server_key: bytes
    key_file: pathlib.Path


class PollItem(ctypes.Structure):
    _fields_ = [("socket", ctypes.c_void_p), ("fd", ctypes.c_int), ("events", ctypes.c_short),
                ("revents", ctypes.c_short)]


def load_zmq():
    zmq = ctypes.CDLL("libzmq.so.5", use_errno=True)
    for name in ("zmq_ctx_new", "zmq_socket"):
        getattr(zmq, name).restype = ctypes.c_void_p
    zmq.zmq_socket.argtypes = [ctypes.c_void_p, ctypes.c_int]
    zmq.zmq_ctx_term.argtypes = [ctypes.c_void_p]
    zmq.zmq_close.argtypes = [ctypes.c_void_p]
    zmq.zmq_connect.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    zmq.zmq_setsockopt.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
    zmq.zmq_send.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    zmq.zmq_recv.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    zmq.zmq_poll.argtypes = [ctypes.POINTER(PollItem), ctypes.c_int, ctypes.c_long]
    return zmq


class Link:
    """A connection with a key, without a client library that would send only correct frames."""

    def __init__(self, target):
        self.zmq = load_zmq()
        lines = target.key_file.read_text(encoding="utf-8").splitlines()
        keys = dict(line.split() for line in lines if not line.startswith("#"))
        self.context = self.zmq.zmq_ctx_new()
        self.socket = self.zmq.zmq_socket(self.context, ZMQ_DEALER)
        self.set_option(ZMQ_LINGER, struct.pack("i", 0))
        self.set_option(ZMQ_SNDTIMEO, struct.pack("i", WAIT_MS))
        self.set_option(ZMQ_CURVE_SERVERKEY, target.server_key)
        self.set_option(ZMQ_CURVE_PUBLICKEY, bytes.fromhex(keys["public"]))
        self.set_option(ZMQ_CURVE_SECRETKEY, bytes.fromhex(keys["secret"]))
        endpoint = f"tcp://{target.host}:{target.port}".encode()
        self.check(self.zmq.zmq_connect(self.socket, endpoint))
        self.buffer = ctypes.create_string_buffer(1 << 16)

    def set_option(self, option, value):
        self.check(self.zmq.zmq_setsockopt(self.socket, option, value, len(value)))

    @staticmethod
    def check(result):
        if result < 0:
            raise OSError(ctypes.get_errno(), "ZeroMQ")

    def send(self, frame):
        self.check(self.zmq.zmq_send(self.socket, frame, len(frame), 0))

    def receive(self):
        """Waits for a frame, and returns it."""
        item = PollItem(self.socket, 0, ZMQ_POLLIN, 0)
        if self.zmq.zmq_poll(ctypes.byref(item), 1, WAIT_MS) != 1:
            raise TimeoutError(f"no answer within {WAIT_MS} ms")
        size = self.zmq.zmq_recv(self.socket, self.buffer, len(self.buffer), ZMQ_DONTWAIT)
        self.check(size)
        return self.buffer.raw[:size]

    def close(self):
        self.zmq.zmq_close(self.socket)
        self.zmq.zmq_ctx_term(self.context)


def malformed_frame(draw):
    """Random bytes. Half of the frames have the identifier, so the node looks into them."""
    frame = bytearray(draw.randbytes(draw.randrange(1, LONGEST_FRAME)))
    if len(frame) > 8 and draw.random() < 0.5:
        frame[4:8] = FILE_IDENTIFIER
    return bytes(frame)


def send_malformed_frames(target, count, seed):
    """Sends the frames, and waits for a refusal of each. Returns their number."""
    draw = random.Random(seed)
    link = Link(target)
    unanswered = 0
    for _ in range(count):
        link.send(malformed_frame(draw))
        unanswered += 1
        while unanswered >= UNANSWERED:
            unanswered -= 1
            link.receive()
    for _ in range(unanswered):
        link.receive()
    link.close()
    return count


def drop_raw_connection(target, number):
    """A connection that ends within the greeting, or within what follows it."""
    with socket.create_connection((target.host, target.port)) as raw:
        raw.sendall((GREETING + os.urandom(64))[:1 + number % 128])


def drop_link(target, draw):
    """A connection with a key that ends without a goodbye, after a wrong frame."""
    link = Link(target)
    link.send(malformed_frame(draw))
    link.receive()
    link.close()


def kill_client(connect):
    """A client whose process is killed while its transaction is open."""
    child = os.fork()
    if child == 0:
        try:
            transaction = connect().transaction()
            transaction.put("people", b"never", b"1")
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        raise AssertionError("a client could not open its transaction")


def drop_connections(target, count, connect=None):
    """Opens and drops connections: of ten, eight without a key, one with a key, and one session of
    a client that is killed, if `connect` returns a connection of the Python package."""
    draw = random.Random(count)
    for number in range(count):
        if number % 10 == 8:
            drop_link(target, draw)
        elif number % 10 == 9 and connect is not None:
            kill_client(connect)
        else:
            drop_raw_connection(target, number)


def wait_until(is_true, what):
    """Waits for something that the node does soon after an attack."""
    end = time.monotonic() + WAIT_MS / 1000
    while not is_true():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.01)
