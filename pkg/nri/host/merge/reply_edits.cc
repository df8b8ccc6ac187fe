// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/merge/reply_edits.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <google/protobuf/message.h>

#include "pkg/nri/host/merge/keyed_edits.h"

namespace resmgr::nri {
namespace {

using google::protobuf::FieldDescriptor;
using Strings = google::protobuf::RepeatedPtrField<std::string>;

// Entries that containers have as plugins send them. The functions are those of the entry's key.
template <typename Message, api::Field kNriField, bool kMayBeRemoved, auto kKey, auto kMutableKey>
struct PlainKind {
  using Entry = Message;
  static constexpr api::Field kField = kNriField;
  static constexpr bool kRemovable = kMayBeRemoved;

  static const std::string& KeyOf(const Entry& entry) { return (entry.*kKey)(); }
  static const std::string& ShownKeyOf(const Entry& entry) { return KeyOf(entry); }
  static void SetKey(std::string key, Entry& entry) { *(entry.*kMutableKey)() = std::move(key); }
  static void Show(const Entry& from, Entry& to) { to = from; }
};

using MountKind = PlainKind<api::Mount, api::FIELD_MOUNTS, true, &api::Mount::destination,
                            &api::Mount::mutable_destination>;
using DeviceKind = PlainKind<api::LinuxDevice, api::FIELD_DEVICES, true, &api::LinuxDevice::path,
                             &api::LinuxDevice::mutable_path>;
using NamespaceKind = PlainKind<api::LinuxNamespace, api::FIELD_NAMESPACE, true,
                                &api::LinuxNamespace::type, &api::LinuxNamespace::mutable_type>;
using LimitKind = PlainKind<api::POSIXRlimit, api::FIELD_RLIMITS, false, &api::POSIXRlimit::type,
                            &api::POSIXRlimit::mutable_type>;
using CdiKind = PlainKind<api::CDIDevice, api::FIELD_CDI_DEVICES, false, &api::CDIDevice::name,
                          &api::CDIDevice::mutable_name>;
using HugepageKind =
    PlainKind<api::HugepageLimit, api::FIELD_HUGEPAGE_LIMITS, false, &api::HugepageLimit::page_size,
              &api::HugepageLimit::mutable_page_size>;

// Containers have variables as "NAME=VALUE".
struct EnvironmentKind {
  using Entry = api::KeyValue;
  static constexpr api::Field kField = api::FIELD_ENV;
  static constexpr bool kRemovable = true;
  static const std::string& KeyOf(const Entry& entry) { return entry.key(); }
  static std::string_view ShownKeyOf(std::string_view shown) {
    return shown.substr(0, shown.find('='));
  }
  static void SetKey(std::string key, Entry& entry) { entry.set_key(std::move(key)); }
  static void Show(const Entry& from, std::string& to) { to = from.key() + "=" + from.value(); }
};

using HugepageEdits = ListEdits<HugepageKind>;

// A field of a message that has one owner: a message of its own, whose presence tells that a value
// is set, even if it is 0 (protobuf's own merge would lose such a 0), or a non-empty string.
struct SimpleField {
  int number = 0;
  api::Field field = api::FIELD_NONE;
};

using Adjusted = api::LinuxContainerAdjustment;
constexpr std::array kLinuxFields{
    SimpleField{Adjusted::kCgroupsPathFieldNumber, api::FIELD_CGROUPS_PATH},
    SimpleField{Adjusted::kOomScoreAdjFieldNumber, api::FIELD_OOM_SCORE_ADJ},
    SimpleField{Adjusted::kIoPriorityFieldNumber, api::FIELD_IO_PRIORITY},
    SimpleField{Adjusted::kSeccompPolicyFieldNumber, api::FIELD_SECCOMP_POLICY},
    SimpleField{Adjusted::kSchedulerFieldNumber, api::FIELD_LINUX_SCHED},
    SimpleField{Adjusted::kMemoryPolicyFieldNumber, api::FIELD_MEMORY_POLICY},
};

constexpr std::array kRdtFields{
    SimpleField{api::LinuxRdt::kClosIdFieldNumber, api::FIELD_RDT_CLOS_ID},
    SimpleField{api::LinuxRdt::kSchemataFieldNumber, api::FIELD_RDT_SCHEMATA},
    SimpleField{api::LinuxRdt::kEnableMonitoringFieldNumber, api::FIELD_RDT_ENABLE_MONITORING},
};

constexpr std::array kMemoryFields{
    SimpleField{api::LinuxMemory::kLimitFieldNumber, api::FIELD_MEM_LIMIT},
    SimpleField{api::LinuxMemory::kReservationFieldNumber, api::FIELD_MEM_RESERVATION},
    SimpleField{api::LinuxMemory::kSwapFieldNumber, api::FIELD_MEM_SWAP_LIMIT},
    SimpleField{api::LinuxMemory::kKernelFieldNumber, api::FIELD_MEM_KERNEL_LIMIT},
    SimpleField{api::LinuxMemory::kKernelTcpFieldNumber, api::FIELD_MEM_TCPLIMIT},
    SimpleField{api::LinuxMemory::kSwappinessFieldNumber, api::FIELD_MEM_SWAPPINESS},
    SimpleField{api::LinuxMemory::kDisableOomKillerFieldNumber, api::FIELD_MEM_DISABLE_OOM_KILLER},
    SimpleField{api::LinuxMemory::kUseHierarchyFieldNumber, api::FIELD_MEM_USE_HIERARCHY},
};
constexpr std::array kCpuFields{
    SimpleField{api::LinuxCPU::kSharesFieldNumber, api::FIELD_CPUSHARES},
    SimpleField{api::LinuxCPU::kQuotaFieldNumber, api::FIELD_CPUQUOTA},
    SimpleField{api::LinuxCPU::kPeriodFieldNumber, api::FIELD_CPUPERIOD},
    SimpleField{api::LinuxCPU::kRealtimeRuntimeFieldNumber, api::FIELD_CPUREALTIME_RUNTIME},
    SimpleField{api::LinuxCPU::kRealtimePeriodFieldNumber, api::FIELD_CPUREALTIME_PERIOD},
    SimpleField{api::LinuxCPU::kCpusFieldNumber, api::FIELD_CPUSET_CPUS},
    SimpleField{api::LinuxCPU::kMemsFieldNumber, api::FIELD_CPUSET_MEMS},
};
constexpr std::array kOtherFields{
    SimpleField{api::LinuxResources::kPidsFieldNumber, api::FIELD_PIDS_LIMIT},
    SimpleField{api::LinuxResources::kBlockioClassFieldNumber, api::FIELD_BLOCKIO_CLASS},
    SimpleField{api::LinuxResources::kRdtClassFieldNumber, api::FIELD_RDT_CLASS},
};

const FieldDescriptor& DescriptorOf(const google::protobuf::Message& message,
                                    const SimpleField& field) {
  return *message.GetDescriptor()->FindFieldByNumber(field.number);
}

bool IsSet(const google::protobuf::Message& message, const SimpleField& field) {
  return message.GetReflection()->HasField(message, &DescriptorOf(message, field));
}

bool HasAny(const google::protobuf::Message& message, std::span<const SimpleField> fields) {
  return std::ranges::any_of(fields,
                             [&](const SimpleField& field) { return IsSet(message, field); });
}

Status ClaimSet(const google::protobuf::Message& message, std::span<const SimpleField> fields,
                const FieldLedger::Claimant& claimant) {
  for (const SimpleField& field : fields)
    if (IsSet(message, field)) RESMGR_RETURN_IF_ERROR(claimant.Claim(field.field));
  return OkStatus();
}

// Copies the set fields as a whole; both messages are of one type.
void CopySet(const google::protobuf::Message& from, std::span<const SimpleField> fields,
             google::protobuf::Message& to) {
  for (const SimpleField& field : fields) {
    if (!IsSet(from, field)) continue;
    const FieldDescriptor& descriptor = DescriptorOf(from, field);
    if (descriptor.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      to.GetReflection()->SetString(&to, &descriptor,
                                    from.GetReflection()->GetString(from, &descriptor));
    } else {
      to.GetReflection()
          ->MutableMessage(&to, &descriptor)
          ->CopyFrom(from.GetReflection()->GetMessage(from, &descriptor));
    }
  }
}

void Clear(api::Field wanted, std::span<const SimpleField> fields,
           google::protobuf::Message& message) {
  for (const SimpleField& field : fields)
    if (field.field == wanted)
      message.GetReflection()->ClearField(&message, &DescriptorOf(message, field));
}

// Copies all fields but the sizes of huge pages.
void CopyMost(const api::LinuxResources& from, api::LinuxResources& to) {
  if (HasAny(from.memory(), kMemoryFields)) {
    CopySet(from.memory(), kMemoryFields, *to.mutable_memory());
  }
  if (HasAny(from.cpu(), kCpuFields)) CopySet(from.cpu(), kCpuFields, *to.mutable_cpu());
  CopySet(from, kOtherFields, to);
  for (const auto& [file, value] : from.unified())
    (*to.mutable_unified())[file] = value;
  to.mutable_devices()->MergeFrom(from.devices());
}

bool AnyHook(const api::Hooks& hooks) {
  return !hooks.prestart().empty() || !hooks.create_runtime().empty() ||
         !hooks.create_container().empty() || !hooks.start_container().empty() ||
         !hooks.poststart().empty() || !hooks.poststop().empty();
}

// Whether the plugin means to override the arguments of others: the first one is empty (NRI 0.10).
bool Overrides(const Strings& args) {
  return !args.empty() && args[0].empty();
}

bool HasArgs(const Strings& args) {
  return args.size() > (Overrides(args) ? 1 : 0);
}

// If there is nothing behind the mark, the container gets its original arguments back.
void SetArgs(const Strings& wanted, const Strings& before, Strings& args) {
  if (wanted.empty()) return;
  args.CopyFrom(HasArgs(wanted) ? wanted : before);
  if (HasArgs(wanted) && Overrides(wanted)) args.DeleteSubrange(0, 1);
}

Status ClaimRdt(const api::LinuxRdt& rdt, const FieldLedger::Claimant& claimant) {
  if (rdt.remove()) {
    for (const SimpleField& field : kRdtFields)
      claimant.Clear(field.field);
  }
  return ClaimSet(rdt, kRdtFields, claimant);
}

void ShowLinux(const api::LinuxContainerAdjustment& reply, api::LinuxContainer& linux) {
  if (!reply.cgroups_path().empty()) linux.set_cgroups_path(reply.cgroups_path());
  if (reply.has_oom_score_adj()) *linux.mutable_oom_score_adj() = reply.oom_score_adj();
  if (reply.has_io_priority()) *linux.mutable_io_priority() = reply.io_priority();
  if (reply.has_seccomp_policy()) *linux.mutable_seccomp_policy() = reply.seccomp_policy();
  if (reply.has_scheduler()) *linux.mutable_scheduler() = reply.scheduler();
  if (reply.rdt().remove()) linux.clear_rdt();
  if (HasAny(reply.rdt(), kRdtFields)) CopySet(reply.rdt(), kRdtFields, *linux.mutable_rdt());
  if (AnySet(reply.resources())) OverlayResources(reply.resources(), *linux.mutable_resources());
}

}  // namespace

struct ReplyEdits::Lists {
  explicit Lists(const api::ContainerAdjustment& reply)
      : annotations(api::FIELD_ANNOTATIONS, reply.annotations()),
        sysctls(api::FIELD_SYSCTL, reply.linux().sysctl()),
        net_devices(api::FIELD_LINUX_NET_DEVICES, reply.linux().net_devices()),
        mounts(reply.mounts()),
        environment(reply.env()),
        limits(reply.rlimits()),
        cdi_devices(reply.cdi_devices()),
        devices(reply.linux().devices()),
        namespaces(reply.linux().namespaces()) {}

  Status Claim(const FieldLedger::Claimant& claimant) const {
    RESMGR_RETURN_IF_ERROR(annotations.Claim(claimant));
    RESMGR_RETURN_IF_ERROR(mounts.Claim(claimant));
    RESMGR_RETURN_IF_ERROR(environment.Claim(claimant));
    RESMGR_RETURN_IF_ERROR(limits.Claim(claimant));
    RESMGR_RETURN_IF_ERROR(cdi_devices.Claim(claimant));
    RESMGR_RETURN_IF_ERROR(devices.Claim(claimant));
    RESMGR_RETURN_IF_ERROR(namespaces.Claim(claimant));
    RESMGR_RETURN_IF_ERROR(sysctls.Claim(claimant));
    return net_devices.Claim(claimant);
  }

  MapEdits<std::string> annotations;
  MapEdits<std::string> sysctls;
  MapEdits<api::LinuxNetDevice> net_devices;
  ListEdits<MountKind> mounts;
  ListEdits<EnvironmentKind> environment;
  ListEdits<LimitKind> limits;
  ListEdits<CdiKind> cdi_devices;
  ListEdits<DeviceKind> devices;
  ListEdits<NamespaceKind> namespaces;
};

ReplyEdits::ReplyEdits(const api::ContainerAdjustment& reply)
    : reply_(reply), lists_(std::make_unique<const Lists>(reply)) {}

ReplyEdits::~ReplyEdits() = default;

Status ReplyEdits::Claim(const FieldLedger::Claimant& claimant) const {
  RESMGR_RETURN_IF_ERROR(lists_->Claim(claimant));
  if (AnyHook(reply_.hooks())) claimant.Join(api::FIELD_OCI_HOOKS);
  if (Overrides(reply_.args())) claimant.Clear(api::FIELD_ARGS);
  if (HasArgs(reply_.args())) RESMGR_RETURN_IF_ERROR(claimant.Claim(api::FIELD_ARGS));
  if (!reply_.has_linux()) return OkStatus();
  RESMGR_RETURN_IF_ERROR(ClaimSet(reply_.linux(), kLinuxFields, claimant));
  RESMGR_RETURN_IF_ERROR(ClaimRdt(reply_.linux().rdt(), claimant));
  return ClaimResources(reply_.linux().resources(), claimant);
}

void ReplyEdits::AddTo(api::ContainerAdjustment& merged) const {
  lists_->annotations.AddTo(*merged.mutable_annotations());
  lists_->mounts.AddTo(*merged.mutable_mounts());
  lists_->environment.AddTo(*merged.mutable_env());
  lists_->limits.AddTo(*merged.mutable_rlimits());
  lists_->cdi_devices.AddTo(*merged.mutable_cdi_devices());
  if (AnyHook(reply_.hooks())) merged.mutable_hooks()->MergeFrom(reply_.hooks());
  SetArgs(reply_.args(), Strings(), *merged.mutable_args());

  if (!reply_.has_linux()) return;
  const api::LinuxContainerAdjustment& from = reply_.linux();
  api::LinuxContainerAdjustment& to = *merged.mutable_linux();
  lists_->devices.AddTo(*to.mutable_devices());
  lists_->namespaces.AddTo(*to.mutable_namespaces());
  lists_->sysctls.AddTo(*to.mutable_sysctl());
  lists_->net_devices.AddTo(*to.mutable_net_devices());
  CopySet(from, kLinuxFields, to);
  if (from.rdt().remove()) {
    to.mutable_rdt()->Clear();
    to.mutable_rdt()->set_remove(true);
  }
  if (HasAny(from.rdt(), kRdtFields)) CopySet(from.rdt(), kRdtFields, *to.mutable_rdt());
  if (AnySet(from.resources())) AddResources(from.resources(), *to.mutable_resources());
  if (to.ByteSizeLong() == 0) merged.clear_linux();
}

void ReplyEdits::ShowIn(const Strings& args_before, api::Container& container) const {
  lists_->annotations.ShowIn(*container.mutable_annotations());
  lists_->mounts.ShowIn(*container.mutable_mounts());
  lists_->environment.ShowIn(*container.mutable_env());
  lists_->limits.ShowIn(*container.mutable_rlimits());
  lists_->cdi_devices.ShowIn(*container.mutable_cdi_devices());
  if (AnyHook(reply_.hooks())) container.mutable_hooks()->MergeFrom(reply_.hooks());
  SetArgs(reply_.args(), args_before, *container.mutable_args());

  if (!reply_.has_linux()) return;
  api::LinuxContainer& linux = *container.mutable_linux();
  lists_->devices.ShowIn(*linux.mutable_devices());
  lists_->namespaces.ShowIn(*linux.mutable_namespaces());
  lists_->sysctls.ShowIn(*linux.mutable_sysctl());
  lists_->net_devices.ShowIn(*linux.mutable_net_devices());
  ShowLinux(reply_.linux(), linux);
}

bool AnySet(const api::LinuxResources& resources) {
  return HasAny(resources.memory(), kMemoryFields) || HasAny(resources.cpu(), kCpuFields) ||
         HasAny(resources, kOtherFields) || !resources.hugepage_limits().empty() ||
         !resources.unified().empty() || !resources.devices().empty();
}

Status ClaimResources(const api::LinuxResources& resources, const FieldLedger::Claimant& claimant) {
  RESMGR_RETURN_IF_ERROR(ClaimSet(resources.memory(), kMemoryFields, claimant));
  RESMGR_RETURN_IF_ERROR(ClaimSet(resources.cpu(), kCpuFields, claimant));
  RESMGR_RETURN_IF_ERROR(ClaimSet(resources, kOtherFields, claimant));
  for (const auto& [file, value] : resources.unified())
    RESMGR_RETURN_IF_ERROR(ClaimEntry(claimant, api::FIELD_CGROUPS_UNIFIED, file));
  return HugepageEdits(resources.hugepage_limits()).Claim(claimant);
}

void AddResources(const api::LinuxResources& wanted, api::LinuxResources& merged) {
  CopyMost(wanted, merged);
  HugepageEdits(wanted.hugepage_limits()).AddTo(*merged.mutable_hugepage_limits());
}

void OverlayResources(const api::LinuxResources& wanted, api::LinuxResources& resources) {
  CopyMost(wanted, resources);
  HugepageEdits(wanted.hugepage_limits()).ShowIn(*resources.mutable_hugepage_limits());
}

void ClearField(api::Field field, api::LinuxResources& resources) {
  if (field == api::FIELD_NONE) return resources.clear_devices();
  if (resources.has_memory()) Clear(field, kMemoryFields, *resources.mutable_memory());
  if (resources.has_cpu()) Clear(field, kCpuFields, *resources.mutable_cpu());
  Clear(field, kOtherFields, resources);
}

}  // namespace resmgr::nri
