// SPDX-License-Identifier: Apache-2.0
#include "test/bench/process_stats.h"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "test/support/containerd/child_process.h"

namespace resmgr::bench {

std::chrono::nanoseconds CpuTime(pid_t pid) {
  clockid_t clock = 0;
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return {};
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::chrono::nanoseconds CpuTimeWithout(pid_t pid, std::string_view thread_name) {
  int64_t total = 0;
  std::error_code error;
  const auto tasks = std::filesystem::path("/proc") / std::to_string(pid) / "task";
  for (const auto& thread : std::filesystem::directory_iterator(tasks, error)) {
    std::ifstream names(thread.path() / "comm");
    std::ifstream figures(thread.path() / "schedstat");
    std::string name;
    int64_t nanoseconds = 0;
    if (std::getline(names, name) && name != thread_name && figures >> nanoseconds)
      total += nanoseconds;
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
