// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/classes/class_plan.h"
#include "pkg/classes/host_keeper.h"

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

}  // namespace resmgr
