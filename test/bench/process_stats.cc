// SPDX-License-Identifier: Apache-2.0
#include "test/bench/process_stats.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "test/support/containerd/child_process.h"

namespace resmgr::bench {

namespace {

std::filesystem::path ProcDirectory(pid_t pid) {
  return std::filesystem::path("/proc") / std::to_string(pid);
}

}  // namespace

std::chrono::nanoseconds CpuTime(pid_t pid) {
  int64_t total = 0;
  std::error_code error;
  for (const auto& thread :
       std::filesystem::directory_iterator(ProcDirectory(pid) / "task", error)) {
    std::ifstream file(thread.path() / "schedstat");
    int64_t nanoseconds = 0;
    if (file >> nanoseconds) total += nanoseconds;
  }
  return std::chrono::nanoseconds(total);
}

int64_t PeakRssKib(pid_t pid) {
  return test::ProcStatus(pid, "VmHWM:");
}

int64_t RssKib(pid_t pid) {
  return test::ProcStatus(pid, "VmRSS:");
}

}  // namespace resmgr::bench
