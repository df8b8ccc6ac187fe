// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/pods_cgroup_watch.h"

#include <utility>

#include "pkg/base/parse.h"
#include "pkg/log/log.h"
#include "pkg/topology/online_cpus.h"

namespace resmgr {

PodsCgroupWatch::PodsCgroupWatch(Options options)
    : options_(std::move(options)),
      off_loop_(options_.loop, "pods-cgroup", std::chrono::milliseconds(0)),
      timer_(options_.loop.Every(options_.period, [this] { Look(); })) {}

std::vector<std::string> PodsCgroupWatch::problems() const {
  std::vector<std::string> problems = options_.known;
  if (!lost_.empty()) problems.push_back(lost_);
  return problems;
}

// A CPU may go offline before its own watch has seen that, or come back while the cgroup is read.
void PodsCgroupWatch::Look() {
  if (off_loop_.busy()) return;
  // Without a thread the next period tries again.
  [[maybe_unused]] const Status begun =
      off_loop_.Run([this, places = options_.places, machine = options_.machine,
                     before = options_.offline()]() -> EventLoop::Task {
        const CgroupSets now = ReadPodsCgroup(places);
        const StatusOr<CpuSet> online = ReadOnlineCpus(places.root);
        const CpuSet offline = online.ok() ? machine->online() - *online : CpuSet();
        return
            [this, now, offline = before | offline] { Compare(now, offline | options_.offline()); };
      });
}

void PodsCgroupWatch::Compare(const CgroupSets& now, const CpuSet& offline) {
  const Machine& machine = *options_.machine;
  const CpuSet cpus = now.cpus.empty() ? CpuSet() : machine.allowed() - now.cpus - offline;
  const NodeSet mems = now.mems.empty() ? NodeSet() : machine.allowed_nodes() - now.mems;
  std::string lost;
  if (!cpus.empty() || !mems.empty()) {
    lost = fmt::format(
        "the cgroup of pods ({}) may no longer use{}{}{}{}, so the runtime refuses containers "
        "there "
        "(cgroup v1), or the kernel runs them elsewhere (v2): allow it again, or restart the "
        "daemon to place containers on the others",
        Printable(now.name), cpus.empty() ? "" : " CPUs " + cpus.ToString(),
        cpus.empty() || mems.empty() ? "" : " and",
        mems.empty() ? "" : " memory nodes " + mems.ToString(),
        now.why.empty() ? "" : fmt::format(" ({})", now.why));
  }
  if (lost == lost_) return;
  lost_ = std::move(lost);
  Logger& log = GetLogger("node");
  if (lost_.empty()) {
    log.Info("the cgroup of pods may use all CPUs and memory nodes again");
  } else {
    log.Warn("{}", lost_);
  }
}

}  // namespace resmgr
