// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/classes/class_journal.h"
#include "pkg/classes/class_kind.h"
#include "pkg/classes/class_worker.h"
#include "pkg/classes/host_files.h"
#include "pkg/classes/host_keeper.h"
#include "pkg/classes/testing/fake_host_files.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr::test {

// The worker with one kind of classes, on a host in memory.
class KindBench {
 public:
  FakeHostFiles files;
  ClassesConfig config;
  std::vector<ClassSubject> subjects;

  ClassReport Run(ClassKind& kind) {
    ClassPlan plan;
    const ClassWork work{.subjects = subjects, .pools = {}, .config = config, .host = keeper_};
    kind.Plan(work, plan);
    const HostKeeper::Result result = keeper_.Keep(plan.values);
    kind.Apply(work, plan);
    return MakeReport(plan, subjects, result);
  }
  // A container with this class, whose cgroup is sys/fs/cgroup/c on cgroup v2.
  ClassSubject& Add(const std::string& kind, const std::string& name) {
    ClassSubject& subject = subjects.emplace_back(
        ClassSubject{.container = "shop/p/main", .id = "id", .cgroup = "sys/fs/cgroup/c"});
    subject.chosen.by_name[kind] = {.name = name, .source = "annotation x"};
    return subject;
  }

 private:
  TempDir directory_;
  DeviceLines lines_{files};
  ClassJournal journal_{directory_.path() + "/classes", ""};
  HostKeeper keeper_{lines_, journal_};
};

}  // namespace resmgr::test
