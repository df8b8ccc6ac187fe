// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/adjustment_edits.h"

#include <cstdint>
#include <optional>

#include "pkg/base/wire.h"
#include "pkg/model/resource_fields.h"
#include "pkg/model/unified_files.h"

namespace resmgr {
namespace {

// Paths and fields of runtime.v1, with their names in the .proto file.
constexpr FieldPath kConfig{2};                    // CreateContainerRequest.config
constexpr FieldPath kCreateResources{2, 15, 1};    // .config.linux.resources
constexpr FieldPath kCreateSecurity{2, 15, 2};     // .config.linux.security_context
constexpr FieldPath kCreateSeccomp{2, 15, 2, 15};  // .config.linux.security_context.seccomp
constexpr FieldPath kCreateSandboxLinux{3, 8};     // .sandbox_config.linux
constexpr FieldPath kUpdateRequest{};              // UpdateContainerResourcesRequest
constexpr FieldPath kUpdateResources{2};           // .linux
constexpr FieldPath kSandboxConfig{1};             // RunPodSandboxRequest.config
constexpr FieldPath kSandboxLinux{1, 8};           // .config.linux
constexpr uint32_t kUpdateAnnotations = 4;         // UpdateContainerResourcesRequest
constexpr uint32_t kSandboxLabels = 6;             // PodSandboxConfig
constexpr uint32_t kSandboxAnnotations = 7;        // PodSandboxConfig
constexpr uint32_t kCgroupParent = 1;              // LinuxPodSandboxConfig
// Fields of ContainerConfig.
constexpr uint32_t kCommand = 3;
constexpr uint32_t kArgs = 4;
constexpr uint32_t kEnvs = 6;
constexpr KeyedField kMounts{.field = 7, .key = 1};   // by container_path
constexpr KeyedField kDevices{.field = 8, .key = 1};  // by container_path
constexpr uint32_t kLabels = 9;
constexpr uint32_t kAnnotations = 10;
constexpr uint32_t kCdiDevices = 17;
// Fields of LinuxContainerSecurityContext.
constexpr uint32_t kSeccompProfilePath = 10;
// Fields of SecurityProfile.
constexpr uint32_t kProfileType = 1;
constexpr uint32_t kLocalhostRef = 2;
// Fields of LinuxContainerResources beside the numbers (pkg/model/resource_fields.h).
constexpr uint32_t kCpusetCpus = 6;
constexpr uint32_t kCpusetMems = 7;
constexpr KeyedField kHugepageLimits{.field = 8, .key = 1};  // by page_size
constexpr uint32_t kUnified = 9;

// Annotations from containerd's internal/cri/annotations and CRI-O's pkg/annotations.
constexpr std::string_view kBlockioClass = "io.kubernetes.cri.blockio-class";
constexpr std::string_view kRdtClass = "io.kubernetes.cri.rdt-class";

std::string EncodeMount(const Mount& mount) {
  std::string bytes;
  FieldWriter out(bytes);
  out.Bytes(1, mount.container_path);
  out.Bytes(2, mount.host_path);
  if (mount.read_only) out.Number(3, 1);
  if (mount.selinux_relabel) out.Number(4, 1);
  if (mount.propagation != Mount::Propagation::kPrivate) {
    out.Number(5, static_cast<uint64_t>(mount.propagation));
  }
  if (mount.recursive_read_only) out.Number(8, 1);
  if (!mount.image.empty()) {
    const size_t image = out.Begin(9);
    out.Bytes(1, mount.image);
    out.End(image);
  }
  return bytes;
}

std::string EncodeDevice(const Device& device) {
  std::string bytes;
  FieldWriter out(bytes);
  out.Bytes(1, device.container_path);
  out.Bytes(2, device.host_path);
  out.Bytes(3, device.permissions);
  return bytes;
}

std::string EncodeHugepageLimit(std::string_view page_size, uint64_t limit) {
  std::string bytes;
  FieldWriter out(bytes);
  out.Bytes(1, page_size);
  out.Number(2, limit);
  return bytes;
}

std::string EncodeCdiDevice(std::string_view name) {
  std::string bytes;
  FieldWriter(bytes).Bytes(1, name);
  return bytes;
}

// Collects the edits of one message.
class Editor {
 public:
  explicit Editor(const Adjustment& adjustment)
      : adjustment_(adjustment), wide_(adjustment.wide() != nullptr ? adjustment.wide() : &none_) {}

  void EditCreate();
  void EditUpdate();
  void EditSandbox();
  StatusOr<SplicedMessage> Apply(std::string_view message) const { return splice_.Apply(message); }

 private:
  // Edits of a map, or of the CRI's repeated KeyValue.
  void Pairs(const FieldPath& path, uint32_t field, const KeyedEdits<std::string>& edits);
  template <typename Value, typename Encode>
  void Entries(const FieldPath& path, KeyedField field, const KeyedEdits<Value>& edits,
               Encode encode);
  void EditResources(const FieldPath& path);
  void ClearWhatFilesSay(const FieldPath& path);
  void EditClasses(const FieldPath& path, uint32_t annotations);
  void EditSeccomp(const std::string& profile);

  const Adjustment& adjustment_;
  const WideAdjustment none_;
  const WideAdjustment* wide_;
  MessageSplice splice_;
};

void Editor::Pairs(const FieldPath& path, uint32_t field, const KeyedEdits<std::string>& edits) {
  for (const auto& edit : edits) {
    if (edit.value) {
      splice_.PutPair(path, field, edit.key, *edit.value);
    } else {
      splice_.Remove(path, {.field = field, .key = 1}, edit.key);
    }
  }
}

template <typename Value, typename Encode>
void Editor::Entries(const FieldPath& path, KeyedField field, const KeyedEdits<Value>& edits,
                     Encode encode) {
  for (const auto& edit : edits) {
    if (edit.value) {
      splice_.Put(path, field, edit.key, encode(edit.key, *edit.value));
    } else {
      splice_.Remove(path, field, edit.key);
    }
  }
}

void Editor::EditResources(const FieldPath& path) {
  for (const NumberField& number : kNumberFields) {
    const auto value = NumberIn(adjustment_, number);
    if (value) splice_.SetNumber(path, number.cri_number, static_cast<uint64_t>(*value));
  }
  const ResourceValues& values = adjustment_.values;
  if (values.cpus) splice_.SetBytes(path, kCpusetCpus, values.cpus->ToString());
  if (values.mems) splice_.SetBytes(path, kCpusetMems, values.mems->ToString());
  if (adjustment_.clears_cpus()) splice_.Clear(path, kCpusetCpus);
  if (adjustment_.clears_mems()) splice_.Clear(path, kCpusetMems);
  Entries(path, kHugepageLimits, wide_->hugepage_limits, EncodeHugepageLimit);
  Pairs(path, kUnified, wide_->unified);
  ClearWhatFilesSay(path);
}

// Removes the request's own fields for values that an edited cgroup v2 file sets: runtimes would
// apply both.
void Editor::ClearWhatFilesSay(const FieldPath& path) {
  for (const auto& edit : wide_->unified) {
    const auto said = edit.value ? FieldOfFile(edit.key, *edit.value) : std::nullopt;
    if (!said) continue;
    const Field field = said->field;
    if (field == Field::kCpusetCpus) splice_.Clear(path, kCpusetCpus);
    if (field == Field::kCpusetMems) splice_.Clear(path, kCpusetMems);
    if (field == Field::kHugepageLimits) splice_.Remove(path, kHugepageLimits, said->key);
    for (const NumberField& number : kNumberFields) {
      const bool with_quota = field == Field::kCpuQuota && number.field == Field::kCpuPeriod;
      if (number.field == field || with_quota) splice_.Clear(path, number.cri_number);
    }
  }
}

void Editor::EditClasses(const FieldPath& path, uint32_t annotations) {
  if (wide_->blockio_class) {
    splice_.PutPair(path, annotations, kBlockioClass, *wide_->blockio_class);
  }
  if (wide_->rdt_class) splice_.PutPair(path, annotations, kRdtClass, *wide_->rdt_class);
}

void Editor::EditSeccomp(const std::string& profile) {
  splice_.SetNumber(kCreateSeccomp, kProfileType,
                    static_cast<uint64_t>(SeccompProfile::Kind::kLocalhost));
  splice_.SetBytes(kCreateSeccomp, kLocalhostRef, profile);
  // Removes the older form of the profile, which some runtimes still read.
  splice_.Clear(kCreateSecurity, kSeccompProfilePath);
}

void Editor::EditCreate() {
  EditResources(kCreateResources);
  Pairs(kConfig, kEnvs, wide_->environment);
  if (wide_->args) {
    // A command replaces the image's entry point, and also drops the image's arguments.
    splice_.Clear(kConfig, kCommand);
    splice_.Clear(kConfig, kArgs);
    for (const std::string& arg : *wide_->args)
      splice_.Append(kConfig, kCommand, arg);
  }
  Entries(kConfig, kMounts, wide_->mounts,
          [](std::string_view, const Mount& mount) { return EncodeMount(mount); });
  Entries(kConfig, kDevices, wide_->devices,
          [](std::string_view, const Device& device) { return EncodeDevice(device); });
  for (const std::string& name : wide_->cdi_devices)
    splice_.Append(kConfig, kCdiDevices, EncodeCdiDevice(name));
  Pairs(kConfig, kLabels, wide_->labels);
  Pairs(kConfig, kAnnotations, wide_->annotations);
  EditClasses(kConfig, kAnnotations);
  if (wide_->seccomp_profile) EditSeccomp(*wide_->seccomp_profile);
  if (wide_->cgroup_parent) {
    splice_.SetBytes(kCreateSandboxLinux, kCgroupParent, *wide_->cgroup_parent);
  }
}

void Editor::EditUpdate() {
  EditResources(kUpdateResources);
  Pairs(kUpdateRequest, kUpdateAnnotations, wide_->annotations);
}

void Editor::EditSandbox() {
  Pairs(kSandboxConfig, kSandboxLabels, wide_->labels);
  Pairs(kSandboxConfig, kSandboxAnnotations, wide_->annotations);
  if (wide_->cgroup_parent) {
    splice_.SetBytes(kSandboxLinux, kCgroupParent, *wide_->cgroup_parent);
  }
}

bool IsLinuxResource(Field field) {
  return field == Field::kCpusetCpus || field == Field::kCpusetMems ||
         field == Field::kHugepageLimits || field == Field::kUnified ||
         NumberFieldOf(field) != nullptr;
}

}  // namespace

bool CriHas(Operation operation, Field field) {
  switch (operation) {
    case Operation::kCreateContainer:
      return field != Field::kResourceLimits && field != Field::kHooks &&
             field != Field::kScheduler && field != Field::kIoPriority &&
             field != Field::kMemoryPolicy;
    case Operation::kUpdateContainerResources:
      return IsLinuxResource(field) || field == Field::kAnnotations;
    case Operation::kRunPodSandbox:
      return field == Field::kLabels || field == Field::kAnnotations ||
             field == Field::kCgroupParent;
    default:
      return false;
  }
}

std::string_view AdjustmentSuffix::For(Operation operation, const ResourceValues& values) {
  if (operation == Operation::kCreateContainer) {
    if (values != created_) {
      creation_.clear();
      AppendCreateAdjustment(values, creation_);
      created_ = values;
    }
    return creation_;
  }
  update_.clear();
  if (operation == Operation::kUpdateContainerResources) AppendUpdateAdjustment(values, update_);
  return update_;
}

StatusOr<SplicedMessage> SpliceAdjustment(Operation operation, std::string_view message,
                                          const Adjustment& adjustment) {
  Editor editor(adjustment);
  switch (operation) {
    case Operation::kCreateContainer:
      editor.EditCreate();
      break;
    case Operation::kUpdateContainerResources:
      editor.EditUpdate();
      break;
    case Operation::kRunPodSandbox:
      editor.EditSandbox();
      break;
    default:
      break;
  }
  return editor.Apply(message);
}

}  // namespace resmgr
