// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "pkg/model/problem.h"
#include "pkg/node/hook_hosting.h"
#include "pkg/node/nri_hosting.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {

// The problems of what a front door hosts.
inline std::vector<Problem> HostingProblems(const std::optional<HookHosting>& hooks,
                                            const std::optional<NriHosting>& nri) {
  std::vector<Problem> all;
  if (hooks) all = hooks->problems();
  if (nri) std::ranges::move(nri->problems(), std::back_inserter(all));
  return all;
}

// Adds a problem if no process listens at the socket. Does not block.
inline void AddUnreached(std::string_view what, const std::string& socket,
                         std::vector<Problem>& all) {
  const Status reached = ConnectUnix(socket).status();
  if (reached.ok()) return;
  all.push_back({.kind = "runtime",
                 .message = fmt::format("the {} cannot be reached: {}", what, Message(reached)),
                 .objects = {socket},
                 .next = "ss -lx, which shows whether its socket is there"});
}

}  // namespace resmgr
