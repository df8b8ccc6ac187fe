// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pkg/topology/machine.h"
#include "policies/balloons/testing/reference_cpus.h"

namespace resmgr::test {

// Compares a container's "name", "namespace", "qosclass" or "pod/labels/KEY" with `values` by `op`:
// Equals, NotEqual, In, NotIn, Exists or NotExist.
struct ReferenceExpression {
  std::string key;
  std::string op;
  std::vector<std::string> values;
};

enum class ReferencePriority { kHigh, kNormal, kLow, kNone };

struct ReferenceType {
  std::string name;
  std::vector<std::string> namespaces;  // globs
  std::vector<ReferenceExpression> expressions;
  std::string group_label;  // groupBy ${pod/labels/KEY}; empty: none
  int min_cpus = 0;
  int max_cpus = 0;  // 0: no limit, -1: refuse
  int min_balloons = 0;
  int max_balloons = 0;  // 0: no limit
  ReferencePriority priority = ReferencePriority::kHigh;
  std::optional<bool> balancing;     // not set: the configuration's
  std::optional<bool> spread_cores;  // not set: the configuration's
  bool prefer_new = false;
  bool spread_pods = false;
  bool per_namespace = false;
  bool hide_threads = false;
  // "", "system", "package", "die", "numa", "l3cache", "l2cache", "core", "thread"
  std::string share_idle;
  std::vector<std::string> close;  // devices
  bool isolated = false;           // preferIsolCpus
  std::vector<std::string> loads;  // names of classes
  // Names of types: a balloon consists of one of each, or of one of those that exist least often.
  std::vector<std::string> components;
  bool balance_components = false;
};

struct ReferenceConfig {
  bool balancing = false;
  bool spread_cores = false;
  CpuSet available;
  CpuSet reserved_cpus;        // a cpuset, or else:
  int64_t reserved_milli = 0;  // a quantity
  std::vector<std::string> reserved_namespaces;
  std::vector<ReferenceType> types;
  std::map<std::string, CpuSet> devices;
  std::map<std::string, bool> loads;  // by class: whether it overloads its level in the balloon
};

struct ReferenceContainer {
  uint64_t key = 0;
  std::string pod;
  std::string name;
  std::string namespace_name;
  std::string qos_class;                      // "Guaranteed", "Burstable", "BestEffort"
  std::map<std::string, std::string> labels;  // of the pod
  int64_t milli_cpu = 0;
  std::string annotated;  // the type that an annotation names; empty: none
};

struct ReferenceBalloon {
  const ReferenceType* type = nullptr;
  int index = 0;
  CpuSet own;                                  // none of a composite balloon
  std::list<ReferenceBalloon> parts;           // of a composite balloon, in the order of components
  std::vector<ReferenceContainer> containers;  // in the order of their coming
  // The CPUs that came with one container, and that container, until the next change of the size:
  // they go with it, so that creating and removing it changes nothing.
  CpuSet grown;
  uint64_t grown_by = 0;

  std::string name() const { return type->name + "[" + std::to_string(index) + "]"; }
  CpuSet cpus() const;  // with those of its parts
  int64_t requests() const;
};

// Where the description leaves a choice, it does what the policy does: a balloon that is being made
// does not count yet where a component of the rarest type is chosen, and has its least size at
// once, not first the sizes of its components.
//
// A second implementation of the balloons' rules for comparison: types, instances, sizes and CPUs.
// As simple as possible and without regard for speed; it shares no code with the policy. Features
// that only this project has are left out.
class ReferenceBalloons {
 public:
  // `machine` outlives it.
  ReferenceBalloons(const Machine& machine, ReferenceConfig config);

  // Makes the balloons that exist before any container. False: the configuration needs more CPUs
  // than the machine has.
  bool Start();

  // The balloon that the container is in from now on; nullptr: refused.
  ReferenceBalloon* Create(const ReferenceContainer& container);
  void Remove(uint64_t key);
  // Changes the container's request. It stays in its balloon if that can have the needed size, else
  // it is placed anew. False: refused, and nothing changed.
  bool Update(uint64_t key, int64_t milli_cpu);

  // In the order of their creation.
  const std::list<ReferenceBalloon>& balloons() const { return balloons_; }
  ReferenceBalloon* Find(const std::string& name);
  ReferenceBalloon* Find(uint64_t key);

  // The CPUs that its containers run on.
  CpuSet Visible(const ReferenceBalloon& balloon) const;

  // The method that chose in the last Create, for messages.
  const std::string& method() const { return method_; }

 private:
  const ReferenceType& TypeNamed(const std::string& name) const;
  CpuSet Idle() const;
  // The idle CPUs that the balloon's containers may use, too.
  CpuSet SharedIdle(const ReferenceBalloon& balloon) const;
  const ReferenceType& TypeOf(const ReferenceContainer& container) const;
  ReferenceWish WishOf(const ReferenceBalloon& balloon) const;
  void AddBuiltInTypes();
  void SetUpReserved(ReferenceType& reserved);
  bool Matches(const ReferenceType& type, const ReferenceContainer& container) const;
  std::vector<std::string> ClosenessOf(const ReferenceType& type) const;
  std::vector<std::string> AvoidedBy(const ReferenceType& type) const;
  int CountOf(const ReferenceType& type) const;
  int64_t Free(const ReferenceBalloon& balloon) const;
  int64_t MaximalFree(const ReferenceBalloon& balloon) const;
  ReferenceBalloon* Choose(const ReferenceType& type, const ReferenceContainer& container);
  ReferenceBalloon* NewBalloon(const ReferenceType& type, int64_t request);
  // A balloon of its least size, or nullptr where there are too few CPUs for it.
  ReferenceBalloon* AddBalloon(const ReferenceType& type);
  // Without CPUs.
  void AddParts(ReferenceBalloon& balloon) const;
  const ReferenceType& LeastOften(const std::vector<std::string>& components) const;
  int FreeIndex(const ReferenceType& type) const;
  std::vector<const ReferenceBalloon*> WithParts() const;
  bool IsTooMany() const;
  int Target(const ReferenceBalloon& balloon) const;
  // Each part of a composite balloon gets an equal share of `size`, rounded up. False: too few CPUs
  // are idle, and nothing has changed. `came` is the container that needs more CPUs.
  bool Resize(ReferenceBalloon& balloon, int size, uint64_t came = 0);
  // Gives each part the share that the containers need. If the CPUs are enough in total, but there
  // is not room for equal shares, the parts get what there is.
  bool GrowAsNeeded(ReferenceBalloon& balloon, uint64_t came);
  void Fill(ReferenceBalloon& balloon, int size, uint64_t came);
  // Composite balloons that lack CPUs get those that have become idle.
  void GrowComposites();
  bool ResizeParts(ReferenceBalloon& balloon, int size, uint64_t came);
  void GiveBack(ReferenceBalloon& balloon, uint64_t gone);
  // Whether there are enough idle CPUs for one more container.
  bool CanTake(ReferenceBalloon& balloon, int64_t request);

  const Machine& machine_;
  ReferenceConfig config_;
  ReferenceCpus cpus_;
  std::map<std::string, CpuSet> devices_;  // with the virtual ones
  std::list<ReferenceBalloon> balloons_;
  std::string method_;
};

}  // namespace resmgr::test
