// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/classes/class_context.h"
#include "pkg/classes/class_journal.h"
#include "pkg/classes/class_kind.h"
#include "pkg/classes/class_plan.h"
#include "pkg/classes/class_report.h"
#include "pkg/classes/device_lines.h"
#include "pkg/classes/host_files.h"
#include "pkg/classes/host_keeper.h"
#include "pkg/config/classes_config.h"

namespace resmgr {

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
