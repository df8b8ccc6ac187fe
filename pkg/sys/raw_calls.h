// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pkg/base/sanitizers.h"

namespace resmgr {

// The system calls that every relayed call makes, without the two locked instructions that glibc
// puts around each of them in a process of several threads, for the case that one cancels another
// in the middle of it. No thread is cancelled here. Results and errno are those of the calls of the
// same names. ThreadSanitizer has to see the calls, to run signal handlers after them.
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

}  // namespace resmgr
