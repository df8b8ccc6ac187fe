// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_kind.h"

namespace resmgr {

std::vector<std::unique_ptr<ClassKind>> MakeClassKinds(const ClassContext& context) {
  std::vector<std::unique_ptr<ClassKind>> kinds;
  kinds.push_back(MakeIsolationKind(context));
  kinds.push_back(MakeMemoryKind(context));
  kinds.push_back(MakeBlockioKind(context));
  kinds.push_back(MakeSchedulingKind(context));
  kinds.push_back(MakeRdtKind(context));
  kinds.push_back(MakeRdtMonitorKind());
  kinds.push_back(MakeCpuKind());
  return kinds;
}

Status AddClass(std::string_view kind, const ClassQuestion& about,
                const std::vector<KnownClass>& known, const ClassesConfig& config,
                ChosenClasses& chosen) {
  StatusOr<ClassChoice> choice = ChooseClass(kind, about, known, config);
  Status status = choice.status();
  if (!status.ok()) choice = DefaultClass(about, known);
  chosen.AddNote(choice->note);
  if (!choice->name.empty()) chosen.by_name.insert_or_assign(std::string(kind), *std::move(choice));
  return status;
}

}  // namespace resmgr
