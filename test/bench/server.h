// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"
#include "pkg/sys/unix_socket.h"
#include "test/support/containerd/child_process.h"

namespace resmgr::bench {

// Ends the bench, with its name and this reason.
[[noreturn]] void Fail(const std::string& why);

// A program that serves this socket. kDeadlineExceeded: nothing listens there after 20 s.
StatusOr<std::unique_ptr<test::ChildProcess>> StartServer(const std::vector<std::string>& argv,
                                                          const std::string& socket,
                                                          const std::filesystem::path& log);

// Adds the flags of a daemon that has no other sockets than its front door's.
std::vector<std::string> Alone(std::vector<std::string> flags);

// The first connection to a socket, by a process that was just started; fails after 20 s.
UniqueFd AcceptFirst(ListeningSocket& listener);

}  // namespace resmgr::bench
