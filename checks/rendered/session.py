# Runs in the box: opens a PAM session for the user named, and prints what was logged and the limit now.
import ctypes
import resource
import socket
import sys

log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
log.bind("/dev/log")
log.setblocking(False)
pam = ctypes.CDLL("libpam.so.0")
handle, nobody_to_ask = ctypes.c_void_p(), (ctypes.c_void_p * 2)()
pam.pam_start(b"reader", sys.argv[1].encode(), ctypes.byref(nobody_to_ask), ctypes.byref(handle))
pam.pam_open_session(handle, 0)
print(f"memlock {resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]}")
try:
    while True:
        print(log.recv(4096).decode())
except BlockingIOError:
    pass
