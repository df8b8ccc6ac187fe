// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "cmd/cri-resmgr-ctl/daemon_command.h"

namespace resmgr {

// "connected (/run/containerd.sock)". Only the state if it names the socket itself, as errors do.
std::string WithSocket(const std::string& state, const std::string& socket);

// "throttled: ns/web/main has CPUs 2-3 ...; try: echo max > ..."
std::string ProblemText(const Reply& problem);

// "/usr/share/doc/cri-resmgr/" if the package's pages are installed beside this program; else "",
// so that paths are those in the source.
std::string PagesOf(const std::filesystem::path& program);

}  // namespace resmgr
