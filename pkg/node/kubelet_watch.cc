// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/kubelet_watch.h"

#include <utility>

#include <fmt/format.h>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/log/log.h"
#include "pkg/sys/files.h"

namespace resmgr {
namespace {

// Limit of the file, which has a name and a list of CPUs for each container with exclusive CPUs.
constexpr size_t kLongestStateFile = size_t{1} << 20;
constexpr size_t kLongestPolicyName = 64;

// Whether the policy places containers: all but "none" do.
bool Places(std::string_view policy) {
  return !policy.empty() && policy != "none";
}

}  // namespace

std::string CpuManagerPolicyOf(std::string_view text) {
  const auto json = ParseJson(text);
  return json ? Printable(json_path::TextAt(*json, {"policyName"}), kLongestPolicyName) : "";
}

KubeletWatch::KubeletWatch(Options options)
    : options_(std::move(options)),
      off_loop_(options_.loop, "kubelet-state", std::chrono::milliseconds(0)),
      timer_(options_.loop.Every(options_.period, [this] { Look(); })) {
  Look();
}

void KubeletWatch::Look() {
  if (off_loop_.busy()) return;
  // If no thread can be made, the next period tries again.
  [[maybe_unused]] const Status begun =
      off_loop_.Run([this, file = options_.file]() -> EventLoop::Task {
        const StatusOr<std::string> text = ReadFile(file, kLongestStateFile);
        return [this, policy = text.ok() ? CpuManagerPolicyOf(*text) : ""] { Take(policy); };
      });
}

void KubeletWatch::Take(std::string policy) {
  const bool was_on = Places(policy_);
  policy_ = std::move(policy);
  if (was_on == Places(policy_)) return;
  since_ = std::chrono::system_clock::now();
  for (const Problem& problem : problems())
    GetLogger("node").Warn("{}", problem.message);
}

std::vector<Problem> KubeletWatch::problems() const {
  if (!Places(policy_)) return {};
  return {{.kind = "cpu-manager-on",
           .since = since_,
           .message = fmt::format("the kubelet's CPU manager is on ({} says policyName {}): it "
                                  "places containers, too, and its CPUs are replaced",
                                  options_.file, policy_),
           .objects = {options_.file},
           .next = fmt::format("set cpuManagerPolicy: none for the kubelet, then: rm {} && "
                               "systemctl restart kubelet",
                               options_.file)}};
}

}  // namespace resmgr
