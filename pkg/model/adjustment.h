// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/process_settings.h"
#include "pkg/model/container_details.h"
#include "pkg/model/keyed_edits.h"
#include "pkg/model/resources.h"

namespace resmgr {

struct CreateRequest;

// The fields of a request that stages may change.
enum class Field {
  kCpusetCpus,
  kCpusetMems,
  kCpuShares,
  kCpuQuota,
  kCpuPeriod,
  kMemoryLimit,
  kMemorySwapLimit,
  kOomScoreAdj,
  kHugepageLimits,
  kUnified,
  kBlockioClass,
  kRdtClass,
  kEnvironment,
  kArgs,
  kMounts,
  kDevices,
  kCdiDevices,
  kLabels,
  kAnnotations,
  kCgroupParent,
  kResourceLimits,
  kHooks,
  kSeccompProfile,
  kScheduler,
  kIoPriority,
  kMemoryPolicy,
};

std::string_view ToString(Field field);  // "cpuset_cpus", "annotations", ...

// Whether the kubelet uses a label or an annotation with this key for its own records.
bool IsKubeletsOwn(std::string_view key);

// One field that a stage changed. In a field with keys: the entry with this key.
struct FieldChange {
  Field field = Field::kCpusetCpus;
  std::string key{};

  friend bool operator==(const FieldChange&, const FieldChange&) = default;
};

// Fields that only few stages change. A field that is not set keeps the request's value.
struct WideAdjustment {
  // Clears the request's list of CPUs or memory nodes, which lifts the restriction. If `values` has
  // a list, that wins.
  bool clear_cpus = false;
  bool clear_mems = false;
  std::optional<int64_t> memory_limit{};       // bytes; -1 lifts the limit
  std::optional<int64_t> memory_swap_limit{};  // bytes, of memory and swap together
  std::optional<int64_t> oom_score_adj{};
  KeyedEdits<uint64_t> hugepage_limits{};  // page size ("2MB") to bytes
  KeyedEdits<std::string> unified{};       // cgroup v2 file to value
  std::optional<std::string> blockio_class{};
  std::optional<std::string> rdt_class{};
  KeyedEdits<std::string> environment{};
  std::optional<std::vector<std::string>> args{};  // all arguments, with the program in front
  KeyedEdits<Mount> mounts{};                      // by container path
  KeyedEdits<Device> devices{};                    // by container path
  std::vector<std::string> cdi_devices{};          // in addition to those of the request
  KeyedEdits<std::string> labels{};
  KeyedEdits<std::string> annotations{};
  std::optional<std::string> cgroup_parent{};    // of the pod
  KeyedEdits<ResourceLimit> resource_limits{};   // by type
  std::vector<OciHook> hooks{};                  // in addition
  std::optional<std::string> seccomp_profile{};  // absolute path on the host, or OCI JSON
  std::optional<SchedulerSettings> scheduler{};
  std::optional<IoPriority> io_priority{};
  std::optional<MemoryPolicySettings> memory_policy{};

  friend bool operator==(const WideAdjustment&, const WideAdjustment&) = default;
};

// Changes of a request by one stage, or by all so far. The few fields of the policy are inline; the
// rest takes memory only if a stage sets some of it. A value type that can only be moved,
// thread-compatible.
class Adjustment {
 public:
  Adjustment() = default;
  explicit Adjustment(ResourceValues set) : values(std::move(set)) {}

  ResourceValues values{};

  // nullptr: only `values` are changed.
  const WideAdjustment* wide() const { return wide_.get(); }
  WideAdjustment& Wide() {
    if (wide_ == nullptr) wide_ = std::make_unique<WideAdjustment>();
    return *wide_;
  }
  // Whether this removes the request's list of CPUs and sets none.
  bool clears_cpus() const { return !values.cpus && wide_ != nullptr && wide_->clear_cpus; }
  bool clears_mems() const { return !values.mems && wide_ != nullptr && wide_->clear_mems; }
  // Removes all changes of CPUs and memory nodes, also in `unified`. False: there were none.
  bool DropPlacement();
  // Removes all changes of the kubelet's own labels and annotations. False: there were none.
  bool DropKubeletsOwn();
  // Replaces files in `unified` by fields that can express the same value
  // (pkg/model/unified_files.h). If both a file and its field are set, the file wins, as in
  // runtimes.
  void TranslateFiles();
  // Removes each field that a file in `unified` still sets.
  void YieldToFiles();
  // Whether this sets the field, or a file in `unified` with the same meaning.
  bool Says(const FieldChange& field) const;
  bool empty() const { return values.empty() && (wide_ == nullptr || *wide_ == WideAdjustment()); }

  // All changed fields, in the order of Field.
  std::vector<FieldChange> Changes() const;
  // Adds the changes of `later`, which win, entry by entry for fields with keys. A value may be set
  // by a field or by a file in `unified`; a later one replaces an earlier one of either form.
  void Merge(Adjustment&& later);

 private:
  std::unique_ptr<WideAdjustment> wide_;
};

// Applies the changes of earlier stages to a request that is shown to the next stage. Leaves out
// classes of block I/O and RDT, for which a request has no field.
void Overlay(const Adjustment& so_far, CreateRequest& create);
void Overlay(const Adjustment& so_far, ContainerDetails& details);
// Returns the same object if no detail changes.
std::shared_ptr<const ContainerDetails> Overlaid(const Adjustment& so_far,
                                                 std::shared_ptr<const ContainerDetails> details);

}  // namespace resmgr
