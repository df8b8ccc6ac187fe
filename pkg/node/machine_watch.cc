// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/machine_watch.h"

#include <utility>

#include "pkg/base/parse.h"
#include "pkg/log/log.h"

namespace resmgr {

OnlineWatch::OnlineWatch(Options options)
    : options_(std::move(options)),
      off_loop_(options_.loop, "online-cpus", std::chrono::milliseconds(0)),
      timer_(options_.loop.Every(options_.period, [this] { Look(); })) {
  if (!options_.announced) return;
  auto events =
      KernelEvents::Listen(options_.loop, [this](const KernelEvent& event) { NoteEvent(event); });
  if (events.ok()) {
    events_ = *std::move(events);
  } else {
    GetLogger("node").Info("CPUs that go offline are noticed once a second: {}",
                           Message(events.status()));
  }
}

void OnlineWatch::NoteEvent(const KernelEvent& event) {
  constexpr std::string_view kCpu = "/devices/system/cpu/cpu";
  if (!event.path.starts_with(kCpu)) return;
  const auto id = ParseUint(event.path.substr(kCpu.size()));
  if (!id || *id > CpuSet::kMaxId) return;
  const int cpu = static_cast<int>(*id);
  if (event.action == "offline" && options_.machine->online().Contains(cpu)) passing_.Add(cpu);
  Look();
}

std::vector<std::string> OnlineWatch::problems() const {
  std::vector<std::string> problems;
  if (const CpuSet off = offline_ - withheld_; !off.empty()) {
    problems.push_back(
        fmt::format("{} offline, so no container is placed there: put them back (echo 1 > "
                    "/sys/devices/system/cpu/cpu{}/online), or restart the daemon if they are to "
                    "stay offline",
                    CpusAre(off), off.First()));
  }
  if (!withheld_.empty()) {
    problems.push_back(
        fmt::format("{} online again, but the cgroup of pods ({}) may not use it: cgroup v1 took "
                    "it out of all cpusets; add it to cpuset.cpus there and in the cgroups below, "
                    "or start the node anew",
                    CpusAre(withheld_), Printable(pods_cgroup_)));
  }
  if (!unknown_.empty()) {
    problems.push_back(fmt::format(
        "{} online, but not since the daemon started: restart the daemon to place containers there",
        CpusAre(unknown_)));
  }
  return problems;
}

void OnlineWatch::Look() {
  if (off_loop_.busy()) return;
  // If no thread can be made, the next period tries again.
  const Status begun = off_loop_.Run([this, places = options_.places, were_off = !offline_.empty(),
                                      passing = passing_]() -> EventLoop::Task {
    Seen seen{.online = ReadOnlineCpus(places.root)};
    if (were_off) seen.pods = ReadPodsCgroup(places);
    if (!passing.empty() && !CpusetHierarchy::At(places.root + "/sys/fs/cgroup").unified)
      seen.passing = passing;
    return [this, seen = std::move(seen)] { Take(seen); };
  });
  if (begun.ok()) passing_ = CpuSet();
}

void OnlineWatch::Take(const Seen& seen) {
  Logger& log = GetLogger("node");
  const bool told = std::exchange(unreadable_, !seen.online.ok());
  if (!seen.online.ok()) {
    if (!told) log.Warn("CPUs that go offline are not noticed: {}", Message(seen.online.status()));
    return;
  }
  const Machine& machine = *options_.machine;
  const CpuSet now = (machine.online() - *seen.online) | seen.passing;
  const CpuSet back = (offline_ & machine.allowed()) - now;
  withheld_ = seen.pods.cpus.empty() ? CpuSet() : back - seen.pods.cpus;
  pods_cgroup_ = seen.pods.name;
  unknown_ = *seen.online - machine.online();
  const CpuSet before = std::exchange(offline_, now | withheld_);
  if (const CpuSet gone = offline_ - before; !gone.empty()) log.Warn("{} offline", CpusAre(gone));
  if (const CpuSet again = before - offline_; !again.empty())
    log.Info("{} online again", CpusAre(again));
  options_.look(offline_);
}

std::string CpusAre(const CpuSet& cpus) {
  const bool one = cpus.size() == 1;
  return fmt::format("{} {} {}", one ? "CPU" : "CPUs", cpus.ToString(), one ? "is" : "are");
}

PodsCgroupWatch::PodsCgroupWatch(Options options)
    : options_(std::move(options)),
      off_loop_(options_.loop, "pods-cgroup", std::chrono::milliseconds(0)),
      timer_(options_.loop.Every(options_.period, [this] { Look(); })) {}

std::vector<std::string> PodsCgroupWatch::problems() const {
  std::vector<std::string> problems = options_.known;
  if (!lost_.empty()) problems.push_back(lost_);
  return problems;
}

// Does not report CPUs as missing that were offline at any time of the look: a CPU may go offline
// before OnlineWatch has seen that, or come back while the cgroup is read.
void PodsCgroupWatch::Look() {
  if (off_loop_.busy()) return;
  // If no thread can be made, the next period tries again.
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
  const NodeSet mems = now.mems.empty()
                           ? NodeSet()
                           : (machine.allowed_nodes() & NodesWithMemory(machine)) - now.mems;
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
