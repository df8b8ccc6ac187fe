// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/classes/class_context.h"
#include "pkg/classes/class_journal.h"
#include "pkg/classes/class_kind.h"
#include "pkg/classes/class_plan.h"
#include "pkg/classes/host_files.h"
#include "pkg/classes/host_keeper.h"
#include "pkg/classes/irqbalance.h"
#include "pkg/config/classes_config.h"

namespace resmgr {

// The outcome of a class for one container, for `explain`. A value type.
struct ContainerClass {
  std::string kind{};
  std::string name{};
  std::string source{};    // as ClassChoice::source
  std::string way{};       // "by CPU", "at creation", "before start", ...
  std::string in_force{};  // the effect as read back from the host
  bool active = true;
  std::string reason{};  // why it is inactive, or which effect it lacks
};

// A class with all containers that have it, for `classes`. A value type.
struct ClassState {
  std::string kind{};
  std::string name{};
  bool active = true;
  bool absent = false;  // inactive because the hardware or kernel lacks support
  std::string reason{};
  std::vector<std::string> containers{};  // "namespace/pod/container", each once
  std::vector<std::string> without{};     // those of them for which it is inactive

  // The reason; if only some containers are without the class, it names these.
  std::string Why() const;
  // The containers that `reason` is about.
  const std::vector<std::string>& hit() const { return without.empty() ? containers : without; }
};

// The outcome of a plan. A value type.
struct ClassReport {
  std::vector<ClassState> classes{};  // in the order of their kinds and names
  AbsentKinds absent{};               // as in ClassPlan
  // By container id; a container that is being created has no id yet.
  std::map<std::string, std::vector<ContainerClass>, std::less<>> containers{};
  // Files of the host with values of this daemon, and the values from before.
  std::map<std::string, std::string, std::less<>> held{};
  // Files that could not be restored, and why.
  std::map<std::string, std::string, std::less<>> not_given_back{};
  // Those of `held` that wait until their CPU is online.
  std::set<std::string, std::less<>> waiting{};
  std::string journal{};             // why no value is written
  std::string damage{};              // values of an earlier process that could not be restored
  std::vector<std::string> notes{};  // for the log
};

// The first few names, and the number of others: "24 (nvme0q1), 25 (nvme0q2) and 7 more".
std::string NamesText(const std::vector<std::string>& names);

ClassReport MakeReport(const ClassPlan& plan, const std::vector<ClassSubject>& subjects,
                       const HostKeeper::Result& result);

// Whether the machine supports all classes that a pod asks for. FailedPrecondition: it lacks one.
// Unavailable: there is no report yet (nullptr).
Status CheckPresent(const ClassReport* report, const ChosenClasses& chosen);

// Gives the host's files the values that the containers' classes need, on a thread that may hang.
// in_hand is thread-safe; all other functions are for one thread at a time.
class ClassWorker {
 public:
  // `context.host_root` has sys, proc and dev; `context.directory` is this daemon's alone.
  explicit ClassWorker(ClassContext context);

  ClassReport Run(std::vector<ClassSubject> subjects, const std::vector<ClassPool>& pools,
                  const ClassesConfig& config);
  // The files whose values differ from those that Run would write; changes nothing.
  StatusOr<std::vector<HostDifference>> Compare(std::vector<ClassSubject> subjects,
                                                const std::vector<ClassPool>& pools,
                                                const ClassesConfig& config);
  // The file that is being read or written, or was last.
  std::string in_hand() const;

 private:
  // Opens the journal and finds the containers' cgroups, before all other work.
  Status Prepare(std::vector<ClassSubject>& subjects);
  ClassPlan MakePlan(const ClassWork& work);

  mutable std::mutex mutex_;
  std::string in_hand_;
  const ClassContext context_;
  RealHostFiles real_files_;
  IrqbalanceBans bans_{real_files_};
  DeviceLines files_{bans_};
  const std::vector<std::unique_ptr<ClassKind>> kinds_ = MakeClassKinds(context_);
  std::optional<ClassJournal> journal_;  // set with the first work, like the keeper
  std::optional<HostKeeper> keeper_;
};

}  // namespace resmgr
