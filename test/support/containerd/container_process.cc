// SPDX-License-Identifier: Apache-2.0
// Facts about containers from the kernel, and from containerd's log.
#include <chrono>
#include <csignal>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "test/support/containerd/containerd.h"

namespace resmgr::test {
namespace {

// The text after `key` up to the end of the line or `stop`; "" where the key is not there.
std::string_view After(std::string_view text, std::string_view key, char stop) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find(stop));
}

// The weight to which runc converts shares for cgroup v2.
int64_t WeightOf(int64_t shares) {
  return 1 + ((shares - 2) * 9'999) / 262'142;
}

// Reads a file of cgroup v2: "max", "max 100000", "50000 100000"; 0 when there is none.
int64_t NumberOrMax(const std::string& text) {
  if (text.starts_with("max")) return -1;
  return ParseInt(text.substr(0, text.find(' '))).value_or(0);
}

}  // namespace

std::string Containerd::ProcessOf(const std::string& container_id) const {
  const std::string state = TextOf(directory_ / "runc/k8s.io" / container_id / "state.json");
  return std::string(After(state, R"("init_process_pid":)", ','));
}

std::optional<CpuSet> Containerd::AllowedCpus(const std::string& container_id) const {
  const std::string pid = ProcessOf(container_id);
  if (pid.empty()) return std::nullopt;
  const std::filesystem::path process = std::filesystem::path("/proc") / pid;

  // Between create and start runc itself holds the container's place; ended, it has no command
  // line.
  const std::string command = TextOf(process / "cmdline");
  if (command.empty() || command.starts_with(std::string_view("runc\0init", 9)))
    return std::nullopt;
  const std::string status = TextOf(process / "status");
  auto cpus = CpuSet::Parse(After(status, "\nCpus_allowed_list:\t", '\n'));
  if (!cpus.ok() || cpus->empty()) return std::nullopt;
  return *cpus;
}

std::optional<CpuSet> Containerd::AwaitAllowedCpus(const std::string& container_id) const {
  std::optional<CpuSet> cpus;
  const Status runs = WaitUntil("the container's process runs", std::chrono::seconds(20), [&] {
    cpus = AllowedCpus(container_id);
    return cpus.has_value();
  });
  return runs.ok() ? cpus : std::nullopt;
}

bool Containerd::EndProcess(const std::string& container_id) const {
  const auto pid = ParseInt(ProcessOf(container_id));
  return pid.value_or(0) > 1 && ::kill(static_cast<pid_t>(*pid), SIGKILL) == 0;
}

std::string Containerd::CgroupFile(const std::string& container_id, std::string_view file) const {
  std::string text = TextOf(CgroupPath(container_id, file));
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string Containerd::CgroupPath(const std::string& container_id, std::string_view file) const {
  const std::string pid = ProcessOf(container_id);
  if (pid.empty()) return "";
  // "6:cpuset:/a/b", one line for each hierarchy; "0::/a/b" for the one of cgroup v2.
  std::istringstream lines(TextOf(std::filesystem::path("/proc") / pid / "cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path =
        fmt::format("/sys/fs/cgroup/{}{}/{}", controllers, line.substr(second + 1), file);
    if (!TextOf(path).empty()) return path;
  }
  return "";
}

// Under cgroup v2 an empty list means the parent's.
std::string Containerd::CgroupCpus(const std::string& container_id) const {
  std::string own = CgroupFile(container_id, "cpuset.cpus");
  return own.empty() ? CgroupFile(container_id, "cpuset.cpus.effective") : own;
}

std::string Containerd::CgroupMems(const std::string& container_id) const {
  std::string own = CgroupFile(container_id, "cpuset.mems");
  return own.empty() ? CgroupFile(container_id, "cpuset.mems.effective") : own;
}

int64_t Containerd::CgroupShares(const std::string& container_id, int64_t expected) const {
  const auto shares = ParseInt(CgroupFile(container_id, "cpu.shares"));
  if (shares) return *shares;
  const auto weight = ParseInt(CgroupFile(container_id, "cpu.weight"));
  if (!weight) return 0;
  if (WeightOf(expected) == *weight) return expected;
  return 2 + ((*weight - 1) * 262'142 + 9'998) / 9'999;
}

int64_t Containerd::CgroupQuota(const std::string& container_id) const {
  const auto quota = ParseInt(CgroupFile(container_id, "cpu.cfs_quota_us"));
  return quota ? *quota : NumberOrMax(CgroupFile(container_id, "cpu.max"));
}

int64_t Containerd::CgroupMemoryLimit(const std::string& container_id) const {
  constexpr int64_t kNoMachine = int64_t{1} << 60;
  const auto limit = ParseInt(CgroupFile(container_id, "memory.limit_in_bytes"));
  if (limit) return *limit < kNoMachine ? *limit : -1;
  return NumberOrMax(CgroupFile(container_id, "memory.max"));
}

size_t Containerd::Updates(std::string_view container_id) const {
  const std::string log = TextOf(directory_ / "containerd.log");
  const std::string line = fmt::format("UpdateContainerResources for \\\"{}", container_id);
  size_t count = 0;
  for (size_t at = log.find(line); at != std::string::npos; at = log.find(line, at + 1)) {
    const size_t end = log.find('\n', at);
    if (log.substr(at, end - at).find(" with Linux: ") != std::string::npos) ++count;
  }
  return count;
}

}  // namespace resmgr::test
