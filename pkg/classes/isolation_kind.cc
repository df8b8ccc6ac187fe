// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/isolation_kind.h"

#include "pkg/classes/interrupt_plan.h"
#include "pkg/classes/isolation_plan.h"

namespace resmgr {
namespace {

class IsolationKind final : public ClassKind {
 public:
  Status Choose(const ClassedContainer& container, const ClassesConfig& config,
                ChosenClasses& chosen) const override {
    const bool own_cpus = !container.placement.exclusive.empty();
    StatusOr<IsolationWish> wish = IsolationOf(container.pod, container.name, config);
    if (!wish.ok()) {
      if (own_cpus)
        chosen.isolation = {.isolation = config.isolation, .source = config.isolation_source};
      return wish.status();
    }
    if (!own_cpus) return OkStatus();
    chosen.AddNote(wish->note);
    chosen.isolation = *std::move(wish);
    return OkStatus();
  }
  // A partition disturbs what runs in the cgroup already.
  bool HoldsStart(const ClassSubject& subject, const ClassesConfig&) const override {
    return subject.chosen.isolation.isolation.partition != IsolationConfig::Partition::kNone;
  }
  void Plan(const ClassWork& work, ClassPlan& plan) override {
    PlanInterrupts(work, known_, plan);
    PlanIsolation(work.subjects, work.config, work.host, plan);
  }
  void Apply(const ClassWork&, ClassPlan&) override { known_.Keep(); }

 private:
  KnownInterrupts known_;
};

}  // namespace

std::unique_ptr<ClassKind> MakeIsolationKind() {
  return std::make_unique<IsolationKind>();
}

}  // namespace resmgr
