// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/classes/class_context.h"
#include "pkg/classes/class_journal.h"
#include "pkg/classes/class_kind.h"
#include "pkg/classes/class_plan.h"
#include "pkg/classes/host_files.h"
#include "pkg/classes/host_keeper.h"
#include "pkg/config/classes_config.h"

namespace resmgr {

// The outcome of a class for one container, for `explain`. A value.
struct ContainerClass {
  std::string kind{};
  std::string name{};
  std::string source{};    // as ClassChoice::source
  std::string way{};       // "by CPU", "at creation", "before start", ...
  std::string in_force{};  // as it is read back
  bool active = true;
  std::string reason{};  // the reason why it is inactive, or the effect that it lacks
};

// A class with all containers that have it, for `classes`. A value.
struct ClassState {
  std::string kind{};
  std::string name{};
  bool active = true;
  bool absent = false;  // it is inactive since the machine lacks the hardware or kernel support
  std::string reason{};
  std::vector<std::string> containers{};  // "namespace/pod/container", each once
};

// The outcome of a plan. A value.
struct ClassReport {
  std::vector<ClassState> classes{};  // in the order of their kinds and names
  AbsentKinds absent{};               // as in the plan
  // By container id; a container that is being created has no id yet.
  std::map<std::string, std::vector<ContainerClass>, std::less<>> containers{};
  // Files of the host with our values, and their former values.
  std::map<std::string, std::string, std::less<>> held{};
  std::map<std::string, std::string, std::less<>> not_given_back{};  // files, and why
  std::string journal{};                                             // reason why no value is
                                                                     // written
  std::string damage{};              // values of an earlier process that could not be given back
  std::vector<std::string> notes{};  // for the log
};

// The first few of them: "24 (nvme0q1), 25 (nvme0q2) and 7 more".
std::string NamesText(const std::vector<std::string>& names);

ClassReport MakeReport(const ClassPlan& plan, const std::vector<ClassSubject>& subjects,
                       const HostKeeper::Result& result);

// Whether the machine has what the classes need that a pod asks for. FailedPrecondition: it does
// not. Unavailable: there is no report yet (nullptr).
Status CheckPresent(const ClassReport* report, const ChosenClasses& chosen);

// Gives the host's files the values of the containers' classes, on a thread that may hang. in_hand
// is thread-safe; all else is for one thread at a time.
class ClassWorker {
 public:
  // The root of the host in `context` has sys, proc and dev; its directory is this daemon's alone.
  explicit ClassWorker(ClassContext context);

  ClassReport Run(std::vector<ClassSubject> subjects, const std::vector<ClassPool>& pools,
                  const ClassesConfig& config);
  // The files that differ from the values that Run would write; changes nothing.
  StatusOr<std::vector<HostDifference>> Compare(std::vector<ClassSubject> subjects,
                                                const std::vector<ClassPool>& pools,
                                                const ClassesConfig& config);
  // The file that is, or was last, read or written.
  std::string in_hand() const;

 private:
  // Before all other work: the journal, and the containers' cgroups.
  Status Prepare(std::vector<ClassSubject>& subjects);
  ClassPlan MakePlan(const ClassWork& work);

  mutable std::mutex mutex_;
  std::string in_hand_;
  const ClassContext context_;
  RealHostFiles real_files_;
  DeviceLines files_{real_files_};
  const std::vector<std::unique_ptr<ClassKind>> kinds_ = MakeClassKinds(context_);
  std::optional<ClassJournal> journal_;  // from the first work on, as the keeper
  std::optional<HostKeeper> keeper_;
};

}  // namespace resmgr
