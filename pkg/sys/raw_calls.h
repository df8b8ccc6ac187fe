// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstddef>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pkg/base/sanitizers.h"

namespace resmgr {

// The system calls that every relayed call makes. In a process with several threads, glibc adds two
// locked instructions to each, so that one thread can cancel another within the call. No thread is
// cancelled here, so they are left out. Results and errno are as in glibc's functions.
// ThreadSanitizer must see the calls to run signal handlers after them, so it gets glibc's.
#if RESMGR_TSAN
inline int RawEpollWait(int epoll, epoll_event* events, int most, int timeout) {
  return ::epoll_wait(epoll, events, most, timeout);
}
inline ssize_t RawReceive(int socket, void* data, size_t size) {
  return ::recv(socket, data, size, 0);
}
inline ssize_t RawSend(int socket, const void* data, size_t size) {
  return ::send(socket, data, size, MSG_NOSIGNAL);
}
inline ssize_t RawSendMessage(int socket, const msghdr& message) {
  return ::sendmsg(socket, &message, MSG_NOSIGNAL);
}
#else
inline int RawEpollWait(int epoll, epoll_event* events, int most, int timeout) {
  return static_cast<int>(::syscall(SYS_epoll_pwait, epoll, events, most, timeout, nullptr, 0));
}
inline ssize_t RawReceive(int socket, void* data, size_t size) {
  return ::syscall(SYS_recvfrom, socket, data, size, 0, nullptr, nullptr);
}
inline ssize_t RawSend(int socket, const void* data, size_t size) {
  return ::syscall(SYS_sendto, socket, data, size, MSG_NOSIGNAL, nullptr, 0);
}
inline ssize_t RawSendMessage(int socket, const msghdr& message) {
  return ::syscall(SYS_sendmsg, socket, &message, MSG_NOSIGNAL);
}
#endif

// Whether such a call failed only because there were no bytes or no room, so that it may succeed
// later.
inline bool TryAgain() {
  return errno == EAGAIN || errno == EINTR;
}

}  // namespace resmgr
