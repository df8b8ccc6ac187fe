// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <sys/types.h>

#include "pkg/base/parse.h"
#include "pkg/classes/class_kind.h"
#include "pkg/classes/container_threads.h"
#include "pkg/classes/rdt_plan.h"

namespace resmgr {
namespace {

constexpr const char* kMonitorInfo = "sys/fs/resctrl/info/L3_MON/num_rmids";
constexpr size_t kLongestOwner = 64;

// Whether the container's tasks stay in the root group: the kernel takes a monitoring group's tasks
// only from the control group around it.
bool HasTasksInRoot(const ClassSubject& subject, const ClassWork& work) {
  const RdtConfig& config = work.config.rdt;
  if (HasOwnRdtCpus(subject, config)) return false;  // its CPUs are monitored and not its tasks
  return config.assign == RdtConfig::Assign::kCpus || HasRdtOfPool(subject, work);
}

// The directory of the pod's or container's group; "": it can have none.
std::string MonitorDirectory(const ClassSubject& subject, const ClassWork& work) {
  const RdtConfig& config = work.config.rdt;
  const ClassChoice* const choice = subject.chosen.Find(kRdt);
  const bool of_container = config.monitoring == RdtConfig::Monitoring::kContainer;
  const std::string_view owner = of_container ? subject.id : subject.pod_uid;
  const bool plain = !owner.empty() && owner.size() <= kLongestOwner && IsPlainAscii(owner) &&
                     owner.find('/') == std::string_view::npos;
  if (choice == nullptr || subject.id.empty() || !plain) return "";
  const std::string group = HasTasksInRoot(subject, work) ? "" : RdtGroupOf(choice->name, config);
  return fmt::format("{}/mon_groups/{}{}", RdtGroupPath(group), config.prefix, owner);
}

class RdtMonitorKind final : public ClassKind {
 public:
  Status Choose(const ClassedContainer&, const ClassesConfig&, ChosenClasses&) const override {
    return OkStatus();
  }

  void Plan(const ClassWork& work, ClassPlan& plan) override {
    const RdtConfig& config = work.config.rdt;
    if (!config.any() || config.monitoring == RdtConfig::Monitoring::kNone) return;
    ClassPart part{.kind = kRdt, .name = "(monitoring)"};
    part.possible = work.host.files().Read(kMonitorInfo).status();
    std::map<std::string, CpuSet> cpus;
    for (const ClassSubject& subject : work.subjects) {
      const std::string directory = MonitorDirectory(subject, work);
      if (directory.empty() || !part.possible.ok()) continue;
      CpuSet& own = cpus[directory];
      if (HasOwnRdtCpus(subject, config)) own |= subject.cpus;
    }
    // The kernel refuses CPUs that are offline.
    const CpuSet online = OnlineCpus(work.host.files());
    for (auto& [directory, own] : cpus) {
      if (!online.empty()) own &= online;
      part.paths.push_back(directory + "/.");
      plan.Add({.path = part.paths.back(), .text = std::string(HostFiles::kThere)});
      if (own.empty()) continue;
      part.paths.push_back(directory + "/cpus_list");
      plan.Add({.path = part.paths.back(), .text = own.ToString()});
    }
    part.in_force = fmt::format("{} groups", cpus.size());
    plan.parts.push_back(std::move(part));
  }

  void Apply(const ClassWork& work, ClassPlan& plan) override {
    const RdtConfig& config = work.config.rdt;
    if (config.any()) RemoveForgotten(work);
    const auto part = std::ranges::find_if(
        plan.parts, [](const ClassPart& one) { return one.name == "(monitoring)"; });
    if (part == plan.parts.end() || !part->possible.ok()) return;
    for (const ClassSubject& subject : work.subjects) {
      const std::string directory = MonitorDirectory(subject, work);
      if (directory.empty() || HasOwnRdtCpus(subject, config)) continue;
      const Status moved = Move(subject, directory + "/tasks", work);
      if (!moved.ok() && part->possible.ok()) part->possible = moved;
    }
  }

 private:
  // Removes groups with this daemon's prefix that are in no journal, for instance after its loss:
  // processors have few ids for groups. A group with tasks may be in use, so it stays.
  static void RemoveForgotten(const ClassWork& work) {
    const RdtConfig& config = work.config.rdt;
    std::set<std::string> wanted;
    if (config.monitoring != RdtConfig::Monitoring::kNone)
      for (const ClassSubject& subject : work.subjects)
        wanted.insert(MonitorDirectory(subject, work));
    std::set<std::string> above = RdtGroupsOf(config);
    above.insert("");
    HostFiles& files = work.host.files();
    for (const std::string& group : above) {
      const std::string groups = RdtGroupFile(group, "mon_groups");
      for (const std::string& name : files.List(groups)) {
        const std::string directory = fmt::format("{}/{}", groups, name);
        if (!name.starts_with(config.prefix) || wanted.contains(directory) ||
            work.host.Holds(directory + "/."))
          continue;
        const StatusOr<std::string> tasks = files.Read(directory + "/tasks");
        // If the removal fails, it is tried again with the next work.
        if (tasks.ok() && Trim(*tasks).empty()) files.Write(directory + "/.", "\n");
      }
    }
  }
  // Moves the container's tasks into its group. Does nothing if the group could not be made, since
  // the outcome of its value already has the reason. Tasks that cannot be found stay where they
  // are.
  static Status Move(const ClassSubject& subject, const std::string& tasks, const ClassWork& work) {
    HostFiles& files = work.host.files();
    const StatusOr<std::set<pid_t>> there = ReadTasks(tasks, files);
    if (!there.ok()) return OkStatus();
    const StatusOr<std::set<pid_t>> threads = ThreadsOfContainer(subject, files);
    if (!threads.ok()) return OkStatus();
    std::set<pid_t> left;  // tasks that are in the group of the class since it came by tasks
    if (HasTasksInRoot(subject, work)) {
      const std::string group = RdtGroupOf(subject.chosen.Find(kRdt)->name, work.config.rdt);
      if (!group.empty())
        left = ReadTasks(RdtGroupFile(group, "tasks"), files).value_or(std::set<pid_t>());
    }
    for (const pid_t thread : *threads) {
      if (left.contains(thread))
        RESMGR_RETURN_IF_ERROR(MoveTask(thread, RdtGroupFile("", "tasks"), files).status());
      if (!there->contains(thread)) RESMGR_RETURN_IF_ERROR(MoveTask(thread, tasks, files).status());
    }
    return OkStatus();
  }
};

}  // namespace

std::unique_ptr<ClassKind> MakeRdtMonitorKind() {
  return std::make_unique<RdtMonitorKind>();
}

}  // namespace resmgr
