// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/merge/resource_fields.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "pkg/nri/host/merge/list_edits.h"

namespace resmgr::nri {
namespace {

using google::protobuf::FieldDescriptor;

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

struct HugepageKind {
  using Entry = api::HugepageLimit;
  static constexpr api::Field kField = api::FIELD_HUGEPAGE_LIMITS;
  static constexpr bool kRemovable = false;
  static const std::string& KeyOf(const Entry& entry) { return entry.page_size(); }
  static const std::string& ShownKeyOf(const Entry& entry) { return entry.page_size(); }
  static void SetKey(std::string key, Entry& entry) { entry.set_page_size(std::move(key)); }
  static void Show(const Entry& from, Entry& to) { to = from; }
};
using HugepageEdits = ListEdits<HugepageKind>;

const FieldDescriptor& DescriptorOf(const google::protobuf::Message& message,
                                    const SimpleField& field) {
  return *message.GetDescriptor()->FindFieldByNumber(field.number);
}

bool IsSet(const google::protobuf::Message& message, const SimpleField& field) {
  return message.GetReflection()->HasField(message, &DescriptorOf(message, field));
}

// Copies all fields but the sizes of huge pages.
void CopyMost(const api::LinuxResources& from, api::LinuxResources& to) {
  if (AnySet(from.memory(), kMemoryFields)) {
    CopySet(from.memory(), kMemoryFields, *to.mutable_memory());
  }
  if (AnySet(from.cpu(), kCpuFields)) CopySet(from.cpu(), kCpuFields, *to.mutable_cpu());
  CopySet(from, kOtherFields, to);
  for (const auto& [file, value] : from.unified())
    (*to.mutable_unified())[file] = value;
  to.mutable_devices()->MergeFrom(from.devices());
}

}  // namespace

bool AnySet(const google::protobuf::Message& message, std::span<const SimpleField> fields) {
  return std::ranges::any_of(fields,
                             [&](const SimpleField& field) { return IsSet(message, field); });
}

Status ClaimSet(const google::protobuf::Message& message, std::span<const SimpleField> fields,
                const FieldLedger::Claimant& claimant) {
  for (const SimpleField& field : fields)
    if (IsSet(message, field)) RESMGR_RETURN_IF_ERROR(claimant.Claim(field.field));
  return OkStatus();
}

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

bool AnySet(const api::LinuxResources& resources) {
  return AnySet(resources.memory(), kMemoryFields) || AnySet(resources.cpu(), kCpuFields) ||
         AnySet(resources, kOtherFields) || !resources.hugepage_limits().empty() ||
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

}  // namespace resmgr::nri
