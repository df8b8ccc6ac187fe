// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/memory_kind.h"

#include <algorithm>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr std::string_view kKind = "memory";
constexpr const char* kOnlyFiles = "annotated files";
constexpr const char* kNeedsV2 = "classes of memory need cgroup v2";

class MemoryKind final : public ClassKind {
 public:
  Status Choose(const ClassedContainer& container, const ClassesConfig& config,
                ChosenClasses& chosen) const override {
    RESMGR_ASSIGN_OR_RETURN(
        chosen.memory, MemoryOf(container.pod, container.name, container.memory_limit, config));
    chosen.AddNote(chosen.memory.note);
    return OkStatus();
  }
  // Runtimes refuse such files on cgroup v1.
  void AtCreation(const ChosenClasses& chosen, const ClassesConfig&, bool unified,
                  Adjustment& adjustment) const override {
    if (!unified) return;
    for (const auto& [file, text] : chosen.memory.files)
      adjustment.Wide().unified.Set(file, text);
  }
  void Plan(const ClassWork& work, ClassPlan& plan) override {
    if (work.config.memory.empty() && work.config.memory_files.empty()) return;
    const bool unified = work.host.files().Read("sys/fs/cgroup/cgroup.controllers").ok();
    const Status possible = unified ? OkStatus() : FailedPrecondition("{}", kNeedsV2);
    for (const MemoryClassConfig& one : work.config.memory)
      plan.parts.push_back({.kind = kKind, .name = one.name, .possible = possible});
    for (size_t i = 0; i < work.subjects.size(); ++i) {
      const MemoryWish& wish = work.subjects[i].chosen.memory;
      if (wish.files.empty()) continue;
      ClassPart& part =
          plan.parts.emplace_back(ClassPart{.subject = i,
                                            .kind = kKind,
                                            .name = wish.name.empty() ? kOnlyFiles : wish.name,
                                            .source = wish.source,
                                            .way = "at creation",
                                            .possible = possible});
      if (unified) ReadBack(work.subjects[i], work.host.files(), part);
    }
  }

 private:
  static void ReadBack(const ClassSubject& subject, HostFiles& files, ClassPart& part) {
    if (subject.id.empty()) return;
    if (subject.cgroup.empty()) {
      part.possible = NotFound("the container has no cgroup");
      return;
    }
    for (const auto& [file, wanted] : subject.chosen.memory.files) {
      const std::string path = fmt::format("{}/{}", subject.cgroup, file);
      const StatusOr<std::string> now = files.Read(path);
      if (!now.ok()) {
        part.possible = now.status();
        return;
      }
      const std::string text = Printable(Trim(*now), 64);
      if (!SameHostValue(path, wanted, *now)) {
        part.possible =
            FailedPrecondition("{} is {} and not {}, which is set at creation", file, text, wanted);
      }
      part.in_force.append(part.in_force.empty() ? "" : ", ").append(file + " " + text);
    }
  }
};

}  // namespace

std::unique_ptr<ClassKind> MakeMemoryKind() {
  return std::make_unique<MemoryKind>();
}

}  // namespace resmgr
