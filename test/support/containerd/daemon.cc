// SPDX-License-Identifier: Apache-2.0
#include "test/support/containerd/daemon.h"

#include <chrono>
#include <csignal>
#include <string_view>

#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

constexpr std::chrono::seconds kReadyTimeout{20};
constexpr std::chrono::seconds kTerminateTimeout{20};
constexpr std::string_view kReady = "ready";

}  // namespace

StatusOr<std::unique_ptr<DaemonProcess>> DaemonProcess::Start(
    const std::vector<std::string>& flags, const std::filesystem::path& log_file,
    const std::vector<std::string>& launcher, const std::string& program) {
  std::vector<std::string> argv = launcher;
  argv.push_back(program.empty() ? Program("cri-resmgr") : program);
  argv.insert(argv.end(), flags.begin(), flags.end());
  const size_t earlier = TextOf(log_file).size();
  RESMGR_ASSIGN_OR_RETURN(auto process, ChildProcess::Start(argv, log_file));

  bool ready = false;
  const Status waited = WaitUntil("cri-resmgr says ready", kReadyTimeout, [&] {
    ready = TextOf(log_file).find(kReady, earlier) != std::string::npos;
    return ready || !process->Running();
  });
  if (!ready) {
    const std::string why = waited.ok() ? "cri-resmgr ended" : Describe(waited);
    return Unavailable("{}: {}", why, LastLines(log_file));
  }
  return std::unique_ptr<DaemonProcess>(new DaemonProcess(std::move(process), log_file));
}

StatusOr<int> DaemonProcess::Terminate() {
  process_->Signal(SIGTERM);
  return process_->Wait(kTerminateTimeout);
}

}  // namespace resmgr::test
