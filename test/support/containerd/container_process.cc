// SPDX-License-Identifier: Apache-2.0
// What the kernel says about the processes of containers.
#include <string_view>

#include "test/support/containerd/containerd.h"

namespace resmgr::test {
namespace {

// What stands after `key` up to the end of the line or `stop`; "" where the key is not there.
std::string_view After(std::string_view text, std::string_view key, char stop) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find(stop));
}

}  // namespace

std::optional<CpuSet> Containerd::AllowedCpus(const std::string& container_id) const {
  const std::string state = TextOf(directory_ / "runc/k8s.io" / container_id / "state.json");
  const std::string_view pid = After(state, R"("init_process_pid":)", ',');
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

}  // namespace resmgr::test
