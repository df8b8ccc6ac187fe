// SPDX-License-Identifier: Apache-2.0
// resmgr-fake-runtime -socket PATH [-cpus N]: a CRI runtime in memory, for demonstrations without
// a real one. Ends on SIGTERM or SIGINT.
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

#include "pkg/base/parse.h"
#include "test/support/fake_runtime/fake_runtime.h"

namespace {

constexpr int kUsage = 1;
constexpr int kEnvironment = 2;

}  // namespace

int main(int argc, char** argv) {
  std::string socket;
  resmgr::test::FakeRuntime::Options options;
  options.record = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string_view flag = argv[i];
    if (flag.starts_with("--")) flag.remove_prefix(1);
    const auto number = resmgr::ParseInt(argv[i + 1]);
    if (flag == "-socket") socket = argv[i + 1];
    if (flag == "-cpus" && number) options.store.cpus = static_cast<int>(*number);
  }
  if (socket.empty() || options.store.cpus < 1 || argc % 2 == 0) {
    std::fprintf(stderr, "usage: %s -socket PATH [-cpus N]\n", argv[0]);
    return kUsage;
  }
  // Blocked before the server's threads exist, so that none of them takes the signal.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  resmgr::test::FakeRuntime runtime(options);
  if (const resmgr::Status started = runtime.Start(socket); !started.ok()) {
    std::fprintf(stderr, "%s\n", resmgr::Describe(started).c_str());
    return kEnvironment;
  }
  std::printf("serving on %s\n", socket.c_str());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  return 0;
}
