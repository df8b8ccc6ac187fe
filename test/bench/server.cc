// SPDX-License-Identifier: Apache-2.0
#include "test/bench/server.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <poll.h>

namespace resmgr::bench {

namespace {

constexpr std::chrono::milliseconds kServerTimeout{20'000};

}  // namespace

void Fail(const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, why.c_str());
  std::exit(1);
}

StatusOr<std::unique_ptr<test::ChildProcess>> StartServer(const std::vector<std::string>& argv,
                                                          const std::string& socket,
                                                          const std::filesystem::path& log) {
  RESMGR_ASSIGN_OR_RETURN(auto process, test::ChildProcess::Start(argv, log));
  RESMGR_RETURN_IF_ERROR(
      test::WaitUntil(argv.front(), kServerTimeout, [&] { return ConnectUnix(socket).ok(); }));
  return process;
}

std::vector<std::string> Alone(std::vector<std::string> flags) {
  for (const char* const socket : {"-config-socket", "-admin-socket", "-agent-socket"}) {
    flags.emplace_back(socket);
    flags.emplace_back("disabled");
  }
  return flags;
}

UniqueFd AcceptFirst(ListeningSocket& listener) {
  pollfd waiting{.fd = listener.fd(), .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, static_cast<int>(kServerTimeout.count())) != 1) Fail("nothing connects");
  auto accepted = listener.Accept();
  if (!accepted.ok() || !accepted->has_value()) Fail("nothing connects");
  return **std::move(accepted);
}

}  // namespace resmgr::bench
