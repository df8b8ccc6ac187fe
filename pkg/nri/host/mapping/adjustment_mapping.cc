// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/adjustment_mapping.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "pkg/base/ids.h"
#include "pkg/base/parse.h"
#include "pkg/nri/host/mapping/mapped_parts.h"

namespace resmgr::nri {
namespace {

// Kubernetes' limit of a pod's annotations in bytes (apimachinery, TotalAnnotationSizeLimitB).
constexpr size_t kMostAnnotationBytes = 256UL << 10;
constexpr std::string_view kKubeletsOwn = "io.kubernetes.";
constexpr std::string_view kCdiAnnotation = "cdi.k8s.io/nri-plugins";

using KeySet = std::unordered_set<std::string_view, TextHash, std::equal_to<>>;

// Whether the key has NRI's mark of a removal; the rest of it is the removed key.
bool IsRemoval(std::string_view key) {
  return key.size() > 1 && key.starts_with('-');
}

// The owner of a field, for messages.
std::string OwnerOf(const std::vector<OwnedField>& owners, api::Field field, std::string_view key) {
  const auto found = std::ranges::find_if(owners, [&](const OwnedField& owned) {
    return owned.field == field && (owned.key == key || owned.key.empty());
  });
  return found == owners.end() ? "a plugin" : "plugin \"" + Printable(found->plugin) + "\"";
}

// Names the plugins that set CPU resources, for an error about them: `plugin "10-a" wants CPU
// resources`. Only plugins can have set invalid values.
std::string CpuOwners(const std::vector<OwnedField>& owners) {
  std::string names;
  for (const OwnedField& owned : owners) {
    if (owned.field < api::FIELD_CPUSHARES || owned.field > api::FIELD_CPUSET_MEMS) continue;
    const std::string name = "plugin \"" + Printable(owned.plugin) + "\"";
    if (names.find(name) == std::string::npos) names.append(names.empty() ? "" : ", ").append(name);
  }
  return (names.empty() ? "a plugin" : names) + " wants CPU resources";
}

std::string TextOf(const Shortfall& shortfall, const MappingContext& context) {
  return fmt::format("{} wants to {} {}: {}",
                     OwnerOf(context.owners, shortfall.field, shortfall.key),
                     shortfall.removal ? "remove" : "set", Shown(shortfall), shortfall.why);
}

void Warn(const Shortfall& shortfall, const MappingContext& context, MappedAdjustment& mapped) {
  if (mapped.warnings.size() < MappedAdjustment::kMostWarnings)
    mapped.warnings.push_back(TextOf(shortfall, context));
}

Status ReportShortfall(const Shortfall& shortfall, const MappingContext& context,
                       MappedAdjustment& mapped) {
  if (context.policy.Of(shortfall) == FailurePolicy::kFail) {
    return MakeStatus(StatusCode::kFailedPrecondition, TextOf(shortfall, context));
  }
  Warn(shortfall, context, mapped);
  return OkStatus();
}

// The differences between the wanted device and the file that a runtime would copy.
std::string DifferenceOf(const WantedDevice& wanted, const FoundDevice& found) {
  constexpr uint32_t kPermissions = 07777;
  std::string text;
  const auto add = [&text](const std::string& difference) {
    text.append(text.empty() ? "" : ", ").append(difference);
  };
  if (wanted.mode && (*wanted.mode & kPermissions) != found.mode) {
    add(fmt::format("mode {:04o} instead of {:04o}", found.mode, *wanted.mode & kPermissions));
  }
  if (wanted.uid && *wanted.uid != found.uid) {
    add(fmt::format("user {} instead of {}", found.uid, *wanted.uid));
  }
  if (wanted.gid && *wanted.gid != found.gid) {
    add(fmt::format("group {} instead of {}", found.gid, *wanted.gid));
  }
  return text;
}

Status AddDevices(const HostFiles& files, const FoundFiles& found, const MappingContext& context,
                  MappedAdjustment& mapped) {
  for (size_t i = 0; i < files.devices.size(); ++i) {
    const WantedDevice& wanted = files.devices[i];
    const FoundDevice device = i < found.devices.size() ? found.devices[i] : FoundDevice();
    Shortfall shortfall{.field = api::FIELD_DEVICES, .key = wanted.container_path};
    if (device.path.empty()) {
      shortfall.why = fmt::format("the node has no file of the {} device {}:{}",
                                  wanted.block ? "block" : "character", wanted.major, wanted.minor);
      RESMGR_RETURN_IF_ERROR(ReportShortfall(shortfall, context, mapped));
      continue;
    }
    if (const std::string difference = DifferenceOf(wanted, device); !difference.empty()) {
      shortfall.why = fmt::format("by {} it is a copy of {}, with {}", context.traits.api_name,
                                  device.path, difference);
      RESMGR_RETURN_IF_ERROR(ReportShortfall(shortfall, context, mapped));
    }
    mapped.adjustment.Wide().devices.Set(wanted.container_path,
                                         {.container_path = wanted.container_path,
                                          .host_path = device.path,
                                          .permissions = wanted.permissions});
  }
  return OkStatus();
}

// Adds the mounts. If the CRI would make a read-only mount writable further below, the policy
// decides.
Status AddMounts(const HostFiles& files, const FoundFiles& found, const MappingContext& context,
                 MappedAdjustment& mapped) {
  for (size_t i = 0; i < files.mounts.size(); ++i) {
    Mount mount = files.mounts[i];
    MakeRecursive(context.traits, mount);
    const std::string below = i < found.below.size() ? found.below[i] : mount.host_path;
    if (!below.empty()) {
      const bool opened = mount.read_only && !mount.recursive_read_only;
      const Shortfall shortfall{
          .field = api::FIELD_MOUNTS,
          .key = mount.container_path,
          .why = fmt::format(
              "by {} the container also gets what is mounted below it{}, {}",
              context.traits.api_name,
              below == mount.host_path
                  ? ", which may be anything, since it is not known where the path leads"
                  : fmt::format(", as {}", Printable(below)),
              mount.recursive_read_only ? "read-only" : "writable")};
      if (opened) {
        RESMGR_RETURN_IF_ERROR(ReportShortfall(shortfall, context, mapped));
        continue;
      }
      Warn(shortfall, context, mapped);
    }
    std::string path = mount.container_path;
    mapped.adjustment.Wide().mounts.Set(path, std::move(mount));
  }
  return OkStatus();
}

// Reports the field from which the class was taken.
Status LeaveOutRdt(std::string why, const MappingContext& context, MappedAdjustment& mapped) {
  mapped.adjustment.Wide().rdt_class.reset();
  return ReportShortfall({.field = mapped.rdt_field, .why = std::move(why)}, context, mapped);
}

class AdjustmentMapper {
 public:
  AdjustmentMapper(const api::ContainerAdjustment& wanted, const MappingContext& context)
      : wanted_(wanted), linux_(wanted.linux()), context_(context) {}

  StatusOr<MappedAdjustment> Map();

 private:
  Status Lacks(api::Field field, std::string_view key, std::string_view why, bool removal = false) {
    return ReportShortfall(
        {.field = field, .key = std::string(key), .why = std::string(why), .removal = removal},
        context_, mapped_);
  }
  Status HasNoField(api::Field field, std::string_view key, bool removal = false) {
    return Lacks(field, key, WhyNotWritten(context_.traits, field), removal);
  }
  Status Wrong(api::Field field, std::string_view key, std::string_view why) const {
    return InvalidArgument("{} wants to change {}: {}", OwnerOf(context_.owners, field, key),
                           Shown({.field = field, .key = std::string(key)}), why);
  }
  WideAdjustment& wide() { return mapped_.adjustment.Wide(); }

  Status MapAnnotations();
  Status MapEnvironment();
  Status UnsetEnvironment();
  Status MapArgs();
  Status MapMounts();
  Status MapDevices();
  Status MapCdiDevices();
  Status MapLinuxValues();
  Status MapSeccomp();
  Status MapRdt();
  Status MapLimits();
  Status RefuseHooks();
  Status RefuseLinux();

  const api::ContainerAdjustment& wanted_;
  const api::LinuxContainerAdjustment& linux_;
  const MappingContext& context_;
  MappedAdjustment mapped_;
};

StatusOr<MappedAdjustment> AdjustmentMapper::Map() {
  RESMGR_RETURN_IF_ERROR(MapAnnotations());
  RESMGR_RETURN_IF_ERROR(MapEnvironment());
  RESMGR_RETURN_IF_ERROR(MapArgs());
  RESMGR_RETURN_IF_ERROR(MapMounts());
  RESMGR_RETURN_IF_ERROR(MapDevices());
  RESMGR_RETURN_IF_ERROR(MapCdiDevices());
  RESMGR_RETURN_IF_ERROR(MapLinuxValues());
  RESMGR_RETURN_IF_ERROR(MapSeccomp());
  RESMGR_RETURN_IF_ERROR(MapRdt());
  RESMGR_RETURN_IF_ERROR(MapLimits());
  RESMGR_RETURN_IF_ERROR(RefuseHooks());
  RESMGR_RETURN_IF_ERROR(RefuseLinux());
  return std::move(mapped_);
}

Status AdjustmentMapper::MapAnnotations() {
  size_t bytes = 0;
  for (const auto& [marked, value] : wanted_.annotations()) {
    const bool removal = IsRemoval(marked);
    const std::string_view key = std::string_view(marked).substr(removal ? 1 : 0);
    if (key.starts_with(kKubeletsOwn)) {
      return Wrong(api::FIELD_ANNOTATIONS, key, "it is the kubelet's own");
    }
    bytes += key.size() + value.size();
    if (bytes > kMostAnnotationBytes) {
      return Wrong(api::FIELD_ANNOTATIONS, key, "all together are longer than 256 KiB");
    }
    if (!removal) {
      wide().annotations.Set(key, value);
    } else if (!wanted_.annotations().contains(std::string(key))) {
      wide().annotations.Remove(key);
    }
  }
  return OkStatus();
}

Status AdjustmentMapper::MapEnvironment() {
  bool removes = false;
  for (const api::KeyValue& variable : wanted_.env()) {
    if (IsRemoval(variable.key())) {
      removes = true;
    } else {
      wide().environment.Set(variable.key(), variable.value());
    }
  }
  return removes ? UnsetEnvironment() : OkStatus();
}

// The CRI cannot remove a variable that only the image sets, and an empty value is something else.
Status AdjustmentMapper::UnsetEnvironment() {
  const api::Container pristine = context_.pristine.Make();
  KeySet requested;
  KeySet of_container;
  for (const auto& [name, value] : context_.details.environment)
    requested.insert(name);
  for (const std::string& variable : pristine.env())
    of_container.insert(std::string_view(variable).substr(0, variable.find('=')));
  KeySet set;
  for (const api::KeyValue& variable : wanted_.env())
    if (!IsRemoval(variable.key())) set.insert(variable.key());
  for (const api::KeyValue& variable : wanted_.env()) {
    if (!IsRemoval(variable.key())) continue;
    const std::string_view name = std::string_view(variable.key()).substr(1);
    if (set.contains(name)) continue;
    if (requested.contains(name) || context_.traits.unsets_variables) {
      wide().environment.Remove(name);
    } else if (of_container.contains(name)) {
      const std::string why =
          fmt::format("it is of the image, and {} cannot unset it", context_.traits.api_name);
      RESMGR_RETURN_IF_ERROR(Lacks(api::FIELD_ENV, name, why, true));
    }
  }
  return OkStatus();
}

Status AdjustmentMapper::MapArgs() {
  if (wanted_.args().empty()) return OkStatus();
  if (wanted_.args(0).empty()) return Wrong(api::FIELD_ARGS, "", "there is no program in front");
  if (context_.pristine.Make().args().empty()) {
    return Lacks(api::FIELD_ARGS, "", "the arguments of the image are not known");
  }
  wide().args.emplace(wanted_.args().begin(), wanted_.args().end());
  return OkStatus();
}

Status AdjustmentMapper::MapMounts() {
  if (wanted_.mounts().empty()) return OkStatus();
  KeySet requested;
  for (const Mount& mount : context_.details.mounts)
    requested.insert(mount.container_path);
  KeySet set;
  for (const api::Mount& mount : wanted_.mounts())
    if (!IsRemoval(mount.destination())) set.insert(mount.destination());
  for (const api::Mount& mount : wanted_.mounts()) {
    if (!IsRemoval(mount.destination())) {
      auto mapped = MapMount(mount, context_.traits);
      if (mapped.ok() && mapped->non_recursive && !CanBeNonRecursive(*mapped, context_.traits)) {
        mapped_.host_files.mounts.push_back(*std::move(mapped));
      } else if (mapped.ok()) {
        wide().mounts.Set(mount.destination(), *std::move(mapped));
      } else {
        RESMGR_RETURN_IF_ERROR(
            Lacks(api::FIELD_MOUNTS, mount.destination(), Message(mapped.status())));
      }
      continue;
    }
    const std::string_view path = std::string_view(mount.destination()).substr(1);
    if (set.contains(path)) continue;
    if (requested.contains(path)) {
      wide().mounts.Remove(path);
    } else {
      RESMGR_RETURN_IF_ERROR(Lacks(api::FIELD_MOUNTS, path, "the request has no such mount", true));
    }
  }
  if (mapped_.host_files.mounts.size() > HostFiles::kMostMounts) {
    return Wrong(api::FIELD_MOUNTS, mapped_.host_files.mounts.back().container_path,
                 fmt::format("there are more than {} without \"rbind\"", HostFiles::kMostMounts));
  }
  return OkStatus();
}

Status AdjustmentMapper::MapDevices() {
  if (linux_.devices().empty()) return OkStatus();
  KeySet requested;
  for (const Device& device : context_.details.devices)
    requested.insert(device.container_path);
  KeySet set;
  for (const api::LinuxDevice& device : linux_.devices())
    if (!IsRemoval(device.path())) set.insert(device.path());
  for (const api::LinuxDevice& device : linux_.devices()) {
    if (!IsRemoval(device.path())) {
      auto mapped = MapDevice(device, context_.traits);
      if (mapped.ok()) {
        mapped_.host_files.devices.push_back(*std::move(mapped));
      } else {
        RESMGR_RETURN_IF_ERROR(Lacks(api::FIELD_DEVICES, device.path(), Message(mapped.status())));
      }
      continue;
    }
    const std::string_view path = std::string_view(device.path()).substr(1);
    if (requested.contains(path)) {
      wide().devices.Remove(path);
    } else if (!set.contains(path)) {
      RESMGR_RETURN_IF_ERROR(
          Lacks(api::FIELD_DEVICES, path, "the request has no such device", true));
    }
  }
  if (mapped_.host_files.devices.size() > HostFiles::kMostDevices) {
    return Wrong(api::FIELD_DEVICES, mapped_.host_files.devices.back().container_path,
                 fmt::format("there are more than {}", HostFiles::kMostDevices));
  }
  return OkStatus();
}

Status AdjustmentMapper::MapCdiDevices() {
  std::string names;
  KeySet seen(context_.details.cdi_devices.begin(), context_.details.cdi_devices.end());
  for (const api::CDIDevice& device : wanted_.cdi_devices()) {
    if (!seen.insert(device.name()).second) continue;
    switch (context_.traits.cdi) {
      case RuntimeTraits::Cdi::kField:
        wide().cdi_devices.push_back(device.name());
        break;
      case RuntimeTraits::Cdi::kAnnotation:
        names.append(names.empty() ? "" : ",").append(device.name());
        break;
      case RuntimeTraits::Cdi::kNone:
        RESMGR_RETURN_IF_ERROR(
            Lacks(api::FIELD_CDI_DEVICES, device.name(), "the runtime does not have them"));
        break;
    }
  }
  if (!names.empty()) wide().annotations.Set(kCdiAnnotation, std::move(names));
  return OkStatus();
}

Status AdjustmentMapper::MapLinuxValues() {
  for (const Shortfall& shortfall :
       ShortfallsOf(linux_.resources(), context_.traits, /*update=*/false))
    RESMGR_RETURN_IF_ERROR(ReportShortfall(shortfall, context_, mapped_));
  const Status resources = MapResources(linux_.resources(), context_.traits, mapped_.adjustment);
  if (!resources.ok()) return Annotate(resources, CpuOwners(context_.owners));
  if (linux_.has_oom_score_adj()) wide().oom_score_adj = linux_.oom_score_adj().value();
  return OkStatus();
}

Status AdjustmentMapper::MapSeccomp() {
  if (!linux_.has_seccomp_policy()) return OkStatus();
  const api::LinuxSeccomp& policy = linux_.seccomp_policy();
  using Seccomp = RuntimeTraits::Seccomp;
  if (context_.traits.seccomp == Seccomp::kFile) {
    mapped_.host_files.seccomp_policy = SeccompJson(policy);
    return OkStatus();
  }
  if (context_.details.security.privileged && !context_.traits.privileged_seccomp) {
    return Lacks(api::FIELD_SECCOMP_POLICY, "", "a privileged container runs without one");
  }
  const bool plain = policy.flags().empty() && !policy.has_default_errno() &&
                     policy.listener_path().empty() && policy.listener_metadata().empty();
  if (context_.traits.seccomp == Seccomp::kPlainText && !plain) {
    return Lacks(api::FIELD_SECCOMP_POLICY, "",
                 "this version of the runtime reads neither flags nor a default error number nor "
                 "a listener of it");
  }
  wide().seccomp_profile = SeccompJson(policy);
  return OkStatus();
}

// A request can name a class, but has no fields for the rest of LinuxRdt.
Status AdjustmentMapper::MapRdt() {
  const api::LinuxRdt& rdt = linux_.rdt();
  const bool of_resources = linux_.resources().has_rdt_class();
  mapped_.rdt_field = of_resources ? api::FIELD_RDT_CLASS : api::FIELD_RDT_CLOS_ID;
  if (rdt.has_clos_id() && !of_resources) wide().rdt_class = rdt.clos_id().value();
  if ((of_resources || rdt.has_clos_id()) && !wide().rdt_class.value_or("").empty()) {
    if (context_.traits.without_rdt) {
      RESMGR_RETURN_IF_ERROR(
          LeaveOutRdt("the runtime has said that RDT is disabled", context_, mapped_));
    } else {
      mapped_.host_files.rdt = true;
    }
  }
  if (rdt.has_schemata()) {
    RESMGR_RETURN_IF_ERROR(HasNoField(api::FIELD_RDT_SCHEMATA, ""));
  }
  if (rdt.has_enable_monitoring()) {
    RESMGR_RETURN_IF_ERROR(HasNoField(api::FIELD_RDT_ENABLE_MONITORING, ""));
  }
  if (!rdt.remove()) return OkStatus();
  return HasNoField(api::FIELD_RDT_CLOS_ID, "", /*removal=*/true);
}

Status AdjustmentMapper::MapLimits() {
  for (const api::POSIXRlimit& wanted : wanted_.rlimits()) {
    if (!context_.traits.resource_limits) {
      RESMGR_RETURN_IF_ERROR(HasNoField(api::FIELD_RLIMITS, wanted.type()));
      continue;
    }
    auto limit = MapLimit(wanted);
    if (!limit.ok()) return Wrong(api::FIELD_RLIMITS, wanted.type(), Message(limit.status()));
    wide().resource_limits.Set(wanted.type(), *std::move(limit));
  }
  return OkStatus();
}

Status AdjustmentMapper::RefuseHooks() {
  const api::Hooks& hooks = wanted_.hooks();
  for (const auto* const list :
       {&hooks.prestart(), &hooks.create_runtime(), &hooks.create_container(),
        &hooks.start_container(), &hooks.poststart(), &hooks.poststop()}) {
    for (const api::Hook& hook : *list)
      RESMGR_RETURN_IF_ERROR(HasNoField(api::FIELD_OCI_HOOKS, hook.path()));
  }
  return OkStatus();
}

Status AdjustmentMapper::RefuseLinux() {
  const auto lacks = [this](api::Field field, std::string_view marked) {
    const bool removal = IsRemoval(marked);
    return HasNoField(field, marked.substr(removal ? 1 : 0), removal);
  };
  for (const api::LinuxNamespace& item : linux_.namespaces())
    RESMGR_RETURN_IF_ERROR(lacks(api::FIELD_NAMESPACE, item.type()));
  for (const auto& [name, value] : linux_.sysctl())
    RESMGR_RETURN_IF_ERROR(lacks(api::FIELD_SYSCTL, name));
  for (const auto& [name, device] : linux_.net_devices())
    RESMGR_RETURN_IF_ERROR(lacks(api::FIELD_LINUX_NET_DEVICES, name));
  const std::pair<bool, api::Field> single[] = {
      {!linux_.cgroups_path().empty(), api::FIELD_CGROUPS_PATH},
      {linux_.has_io_priority(), api::FIELD_IO_PRIORITY},
      {linux_.has_scheduler(), api::FIELD_LINUX_SCHED},
      {linux_.has_memory_policy(), api::FIELD_MEMORY_POLICY},
  };
  for (const auto& [is_set, field] : single)
    if (is_set) RESMGR_RETURN_IF_ERROR(HasNoField(field, ""));
  return OkStatus();
}

}  // namespace

StatusOr<MappedAdjustment> MapAdjustment(const api::ContainerAdjustment& wanted,
                                         const MappingContext& context) {
  return AdjustmentMapper(wanted, context).Map();
}

Status AddHostFiles(const FoundFiles& found, const MappingContext& context,
                    MappedAdjustment& mapped) {
  const HostFiles files = std::exchange(mapped.host_files, {});
  RESMGR_RETURN_IF_ERROR(AddDevices(files, found, context, mapped));
  RESMGR_RETURN_IF_ERROR(AddMounts(files, found, context, mapped));
  if (files.rdt && !found.rdt) {
    RESMGR_RETURN_IF_ERROR(
        LeaveOutRdt("the node has no RDT: resctrl is not mounted", context, mapped));
  }
  if (!files.seccomp_policy.empty())
    mapped.adjustment.Wide().seccomp_profile = found.seccomp_profile;
  return OkStatus();
}

}  // namespace resmgr::nri
