// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/classes/class_journal.h"
#include "pkg/classes/class_kind.h"
#include "pkg/classes/class_worker.h"
#include "pkg/classes/host_keeper.h"
#include "pkg/classes/irqbalance.h"
#include "pkg/classes/testing/fake_host_files.h"
#include "pkg/config/config.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr::test {

// Does the work again and again, killed before its first operation on a file, its second one, and
// so on, until it ends without a kill. Checks after each of them.
inline void KillBetweenSteps(FakeHostFiles& files, const std::function<void()>& work,
                             const std::function<void(int steps)>& check) {
  bool finished = false;
  for (int steps = 0; !finished; ++steps) {
    ASSERT_LT(steps, 400);
    files.lives_for = steps;
    try {
      work();
      finished = true;
    } catch (const FakeHostFiles::Killed&) {
    }
    files.lives_for = -1;
    check(steps);
  }
}

// A host in memory, and the worker's keeper of its files.
class KeeperTest : public ::testing::Test {
 protected:
  KeeperTest() { Start(); }
  // A process, after the former one has ended.
  void Start() {
    keeper_.reset();
    journal_.reset();
    journal_.emplace(directory_.path() + "/classes", "boot");
    keeper_.emplace(lines_, *journal_);
  }
  // `classes` is the section of a configuration in YAML.
  void Configure(std::string_view classes) {
    config_ = ParseConfig(fmt::format("classes: {}", classes), "f", {}).value().classes;
  }
  // One work of the worker with these kinds.
  ClassReport Run(std::initializer_list<ClassKind*> kinds,
                  const std::vector<ClassSubject>& subjects,
                  const std::vector<ClassPool>& pools = {}) {
    EXPECT_TRUE(journal_->Open().ok());
    ClassPlan plan;
    const ClassWork work{.subjects = subjects, .pools = pools, .config = config_, .host = *keeper_};
    for (ClassKind* const kind : kinds)
      kind->Plan(work, plan);
    const HostKeeper::Result result = keeper_->Keep(plan.values);
    for (ClassKind* const kind : kinds)
      kind->Apply(work, plan);
    return MakeReport(plan, subjects, result);
  }
  // A container with this class, whose cgroup is sys/fs/cgroup/c on cgroup v2.
  ClassSubject& Add(const std::string& kind, const std::string& name) {
    ClassSubject& subject = subjects_.emplace_back(
        ClassSubject{.container = "shop/p/main", .id = "id", .cgroup = "sys/fs/cgroup/c"});
    subject.chosen.by_name[kind] = {.name = name, .source = "annotation x"};
    return subject;
  }
  static const ClassState& StateOf(const ClassReport& report, std::string_view name) {
    static const ClassState none{.active = false, .reason = "there is no such class"};
    const auto found = std::ranges::find(report.classes, name, &ClassState::name);
    return found == report.classes.end() ? none : *found;
  }
  // The index of "PATH TEXT" among all writes.
  size_t WrittenAt(const std::string& what) const {
    return static_cast<size_t>(std::ranges::find(files_.written, what) - files_.written.begin());
  }

  const TempDir directory_;
  FakeHostFiles files_;
  std::map<std::string, std::string> before_;  // the files before the test
  IrqbalanceBans bans_{files_};
  DeviceLines lines_{bans_};
  std::optional<ClassJournal> journal_;
  std::optional<HostKeeper> keeper_;
  ClassesConfig config_;
  std::vector<ClassSubject> subjects_;
};

}  // namespace resmgr::test
