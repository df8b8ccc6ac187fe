// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/runtime_traits.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "pkg/nri/protocol.h"

namespace resmgr::nri {
namespace {

// Fields of HostConfig alone: KernelMemory, KernelMemoryTCP, MemorySwappiness, OomKillDisable,
// CpuRealtimeRuntime, CpuRealtimePeriod, Sysctls and DeviceCgroupRules.
constexpr api::Field kOfDockerAlone[] = {api::FIELD_MEM_KERNEL_LIMIT,
                                         api::FIELD_MEM_TCPLIMIT,
                                         api::FIELD_MEM_SWAPPINESS,
                                         api::FIELD_MEM_DISABLE_OOM_KILLER,
                                         api::FIELD_CPUREALTIME_RUNTIME,
                                         api::FIELD_CPUREALTIME_PERIOD,
                                         api::FIELD_SYSCTL,
                                         api::FIELD_NONE};

// The release in "v1.6.20~ds1" or "1.30.0". The name of a commit, which may begin with digits, has
// none.
std::optional<ApiVersion> ReleaseOf(std::string_view version) {
  return version.find('.') == version.npos ? std::nullopt : ParseVersion(version);
}

RuntimeTraits TraitsOfDocker(std::optional<ApiVersion> release) {
  using Seccomp = RuntimeTraits::Seccomp;
  const bool old = release && *release < ApiVersion{23, 0, 0};
  return {.api_name = "the Docker API",
          .not_written = kOfDockerAlone,
          .cdi = RuntimeTraits::Cdi::kNone,
          .seccomp = old ? Seccomp::kPlainText : Seccomp::kText,
          .recursive_read_only = false,
          .non_recursive_mounts = !release || *release >= ApiVersion{19, 3, 0},
          // Set for cgroup v1, too: the Docker API has fields for the values that the CRI can only
          // put into cgroup v2 files.
          .cgroup_v2 = true,
          .resource_limits = true,
          .unsets_variables = true,
          .privileged_seccomp = !old};
}

}  // namespace

RuntimeTraits TraitsOf(std::string_view name, std::string_view version, bool cgroup_v2) {
  const auto release = ReleaseOf(version);
  if (name == "docker") return TraitsOfDocker(release);
  RuntimeTraits traits{.cgroup_v2 = cgroup_v2};
  if (!release) return traits;
  if (name == "containerd") {
    if (*release < ApiVersion{1, 7, 0}) traits.cdi = RuntimeTraits::Cdi::kNone;
    traits.recursive_read_only = *release >= ApiVersion{2, 0, 0};
  } else if (name == "cri-o") {
    if (*release < ApiVersion{1, 27, 0}) traits.cdi = RuntimeTraits::Cdi::kAnnotation;
    if (*release < ApiVersion{1, 23, 0}) traits.cdi = RuntimeTraits::Cdi::kNone;
    traits.recursive_read_only = *release >= ApiVersion{1, 30, 0};
  }
  return traits;
}

RuntimeTraits TraitsFor(const RuntimeTraits& traits, std::span<const HandlerFeatures> handlers,
                        std::string_view handler) {
  RuntimeTraits of_handler = traits;
  const auto found = std::ranges::find(handlers, handler, &HandlerFeatures::name);
  if (found == handlers.end()) return of_handler;
  of_handler.recursive_read_only = found->recursive_read_only;
  of_handler.announced_recursive_read_only = found->recursive_read_only;
  return of_handler;
}

// The whole message must match: runtimes quote strings of pods in other errors, which could look
// alike.
bool SaysWithoutRdt(std::string_view message, std::string_view container,
                    std::string_view rdt_class) {
  constexpr std::string_view kBeforeId = "failed to generate container \"";
  constexpr std::string_view kBehindId = "\" spec: failed to set RDT class: ";
  const std::string refusal = fmt::format(
      R"(RDT disabled, refusing to set RDT class of container "{}" to "{}")", container, rdt_class);
  if (!message.ends_with(refusal)) return false;
  message.remove_suffix(refusal.size());
  // CRI-O adds no text, containerd adds what it was about to do.
  if (message.empty()) return true;
  if (!message.starts_with(kBeforeId)) return false;
  message.remove_prefix(kBeforeId.size());
  return message.ends_with(kBehindId) && message.find('"') == message.size() - kBehindId.size();
}

std::string WhyNotWritten(const RuntimeTraits& traits, api::Field field) {
  if (std::ranges::find(traits.not_written, field) != traits.not_written.end()) {
    return fmt::format("cri-resmgr does not set it by {}", traits.api_name);
  }
  return fmt::format("{} has no field for it", traits.api_name);
}

}  // namespace resmgr::nri
