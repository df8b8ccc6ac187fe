// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/adjustment_edits.h"

#include <cstdint>
#include <optional>

#include "pkg/base/field_writer.h"
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
// Fields of LinuxContainerResources.
constexpr uint32_t kCpuPeriod = 1;
constexpr uint32_t kCpuQuota = 2;
constexpr uint32_t kCpuShares = 3;
constexpr uint32_t kMemoryLimit = 4;
constexpr uint32_t kOomScoreAdj = 5;
constexpr uint32_t kCpusetCpus = 6;
constexpr uint32_t kCpusetMems = 7;
constexpr KeyedField kHugepageLimits{.field = 8, .key = 1};  // by page_size
constexpr uint32_t kUnified = 9;
constexpr uint32_t kMemorySwapLimit = 10;

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
      : values_(adjustment.values),
        clears_cpus_(adjustment.clears_cpus()),
        clears_mems_(adjustment.clears_mems()) {
    if (adjustment.wide() != nullptr) wide_ = adjustment.wide();
  }

  void EditCreate();
  void EditUpdate();
  void EditSandbox();
  StatusOr<SplicedMessage> Apply(std::string_view message) const { return splice_.Apply(message); }

 private:
  void Number(const FieldPath& path, uint32_t field, const std::optional<int64_t>& value) {
    if (value) splice_.SetNumber(path, field, static_cast<uint64_t>(*value));
  }
  // Edits of a map, or of the CRI's repeated KeyValue.
  void Pairs(const FieldPath& path, uint32_t field, const KeyedEdits<std::string>& edits);
  template <typename Value, typename Encode>
  void Entries(const FieldPath& path, KeyedField field, const KeyedEdits<Value>& edits,
               Encode encode);
  void EditResources(const FieldPath& path);
  void ClearWhatFilesSay(const FieldPath& path);
  void EditClasses(const FieldPath& path, uint32_t annotations);
  void EditSeccomp(const std::string& profile);

  const ResourceValues& values_;
  const bool clears_cpus_;
  const bool clears_mems_;
  const WideAdjustment none_;
  const WideAdjustment* wide_ = &none_;
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
  Number(path, kCpuPeriod, values_.cpu_period);
  Number(path, kCpuQuota, values_.cpu_quota);
  Number(path, kCpuShares, values_.cpu_shares);
  Number(path, kMemoryLimit, wide_->memory_limit);
  Number(path, kOomScoreAdj, wide_->oom_score_adj);
  if (values_.cpus) splice_.SetBytes(path, kCpusetCpus, values_.cpus->ToString());
  if (values_.mems) splice_.SetBytes(path, kCpusetMems, values_.mems->ToString());
  if (clears_cpus_) splice_.Clear(path, kCpusetCpus);
  if (clears_mems_) splice_.Clear(path, kCpusetMems);
  Entries(path, kHugepageLimits, wide_->hugepage_limits, EncodeHugepageLimit);
  Pairs(path, kUnified, wide_->unified);
  Number(path, kMemorySwapLimit, wide_->memory_swap_limit);
  ClearWhatFilesSay(path);
}

// Removes the request's own fields with the meaning of files, which runtimes would set as well.
void Editor::ClearWhatFilesSay(const FieldPath& path) {
  for (const auto& edit : wide_->unified) {
    const auto field = edit.value ? FieldOfFile(edit.key, *edit.value) : std::nullopt;
    if (!field) continue;
    switch (field->field) {
      case Field::kCpusetCpus:
        splice_.Clear(path, kCpusetCpus);
        break;
      case Field::kCpusetMems:
        splice_.Clear(path, kCpusetMems);
        break;
      case Field::kCpuShares:
        splice_.Clear(path, kCpuShares);
        break;
      case Field::kCpuQuota:
        splice_.Clear(path, kCpuQuota);
        splice_.Clear(path, kCpuPeriod);
        break;
      case Field::kMemoryLimit:
        splice_.Clear(path, kMemoryLimit);
        break;
      case Field::kMemorySwapLimit:
        splice_.Clear(path, kMemorySwapLimit);
        break;
      default:
        splice_.Remove(path, kHugepageLimits, field->key);
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
  // The older form of the profile, which some runtimes still read.
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
  switch (field) {
    case Field::kCpusetCpus:
    case Field::kCpusetMems:
    case Field::kCpuShares:
    case Field::kCpuQuota:
    case Field::kCpuPeriod:
    case Field::kMemoryLimit:
    case Field::kMemorySwapLimit:
    case Field::kOomScoreAdj:
    case Field::kHugepageLimits:
    case Field::kUnified:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool CriHas(Operation operation, Field field) {
  switch (operation) {
    case Operation::kCreateContainer:
      return field != Field::kResourceLimits && field != Field::kHooks;
    case Operation::kUpdateContainerResources:
      return IsLinuxResource(field) || field == Field::kAnnotations;
    case Operation::kRunPodSandbox:
      return field == Field::kLabels || field == Field::kAnnotations ||
             field == Field::kCgroupParent;
    default:
      return false;
  }
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
