// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/merge/default_validator.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pkg/base/parse.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/config/yaml_reader.h"
#include "pkg/nri/host/merge/field_ledger.h"

namespace resmgr::nri {
namespace {

using Annotations = DefaultValidator::Annotations;

constexpr std::string_view kRequiredPluginsAnnotation = "required-plugins.noderesource.dev";

// The owner's name without the "-" that marks a removal; names begin with digits.
std::string_view PluginOf(std::string_view owner) {
  return owner.starts_with('-') ? owner.substr(1) : owner;
}

// The plugins that changed the container's field, for messages.
std::string PluginsThatChanged(api::Field field, const Proposal& proposal) {
  std::set<std::string_view> plugins;
  const api::OwningPlugins all = proposal.owners();
  const auto owners = all.owners().find(proposal.container.id());
  if (owners != all.owners().end()) {
    const auto simple = owners->second.simple().find(field);
    if (simple != owners->second.simple().end()) plugins.insert(PluginOf(simple->second));
    const auto keyed = owners->second.compound().find(field);
    if (keyed != owners->second.compound().end()) {
      for (const auto& [key, owner] : keyed->second.owners())
        plugins.insert(PluginOf(owner));
    }
  }
  return Printable(fmt::format("{}", fmt::join(plugins, ",")));
}

Status Rejected(std::string_view what, api::Field field, const Proposal& proposal) {
  return FailedPrecondition("default validator: \"{}\" may not change {}",
                            PluginsThatChanged(field, proposal), what);
}

struct Annotation {
  std::string name;
  std::string_view value;
};

// The annotation for the container, else the one for the pod.
std::optional<Annotation> FindAnnotation(const Annotations& annotations, std::string_view container,
                                         std::string_view name) {
  // The usual case: a pod without the annotation.
  if (std::ranges::none_of(annotations,
                           [name](const auto& each) { return each.first.starts_with(name); })) {
    return std::nullopt;
  }
  for (std::string written : {fmt::format("{}/container.{}", name, container),
                              fmt::format("{}/pod", name), std::string(name)}) {
    const auto found = annotations.find(written);
    if (found != annotations.end()) return Annotation{std::move(written), found->second};
  }
  return std::nullopt;
}

StatusOr<std::vector<std::string>> ReadNames(const Annotation& annotation) {
  if (annotation.value.size() > kMaxAnnotationText) {
    return InvalidArgument("annotation {} is longer than {} bytes", Printable(annotation.name),
                           kMaxAnnotationText);
  }
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode node,
                          ParseYaml(annotation.value, Printable(annotation.name)));
  if (node.kind == ConfigNode::Kind::kNull) return std::vector<std::string>();
  if (node.kind != ConfigNode::Kind::kList) {
    return ErrorAt(node, {}, "must be a list of plugins");
  }
  std::vector<std::string> names;
  for (const ConfigNode& item : node.items) {
    if (item.kind != ConfigNode::Kind::kScalar) return ErrorAt(item, {}, "must be a plugin's name");
    names.push_back(item.text);
  }
  return names;
}

// Plugins' full names, and their names without the index.
std::unordered_set<std::string_view> NamesOf(std::span<const std::string> plugins) {
  std::unordered_set<std::string_view> names;
  for (const std::string_view plugin : plugins) {
    names.insert(plugin);
    names.insert(plugin.substr(plugin.find('-') + 1));
  }
  return names;
}

}  // namespace

Status DefaultValidator::Check(const Proposal& proposal,
                               std::span<const std::string> present) const {
  const api::LinuxContainerAdjustment& linux = proposal.adjustment.linux();
  if (config_.reject_oci_hooks && proposal.adjustment.hooks().ByteSizeLong() > 0) {
    return Rejected("OCI hooks", api::FIELD_OCI_HOOKS, proposal);
  }
  RESMGR_RETURN_IF_ERROR(CheckSeccomp(proposal));
  if (config_.reject_namespaces && !linux.namespaces().empty()) {
    return Rejected("namespaces", api::FIELD_NAMESPACE, proposal);
  }
  if (config_.reject_sysctls && !linux.sysctl().empty()) {
    return Rejected("sysctls", api::FIELD_SYSCTL, proposal);
  }
  return CheckRequired(proposal, present);
}

Status DefaultValidator::CheckSeccomp(const Proposal& proposal) const {
  if (!proposal.adjustment.linux().has_seccomp_policy()) return OkStatus();
  const api::LinuxContainer& linux = proposal.container.linux();
  const auto type = linux.has_seccomp_profile() ? linux.seccomp_profile().profile_type()
                                                : api::SecurityProfile::PROFILE_UNCONFINED;
  const auto rejected = [&](bool reject, std::string_view profile) {
    if (!reject) return OkStatus();
    return Rejected(fmt::format("the seccomp policy of a container with the profile {}", profile),
                    api::FIELD_SECCOMP_POLICY, proposal);
  };
  switch (type) {
    case api::SecurityProfile::PROFILE_RUNTIME_DEFAULT:
      return rejected(config_.reject_runtime_default_seccomp, "RuntimeDefault");
    case api::SecurityProfile::PROFILE_UNCONFINED:
      return rejected(config_.reject_unconfined_seccomp, "Unconfined");
    default:
      return rejected(config_.reject_custom_seccomp, "Localhost");
  }
}

StatusOr<bool> DefaultValidator::ToleratesMissing(const Annotations& of_pod,
                                                  std::string_view container) const {
  if (config_.tolerate_missing_annotation.empty()) return false;
  const auto annotation = FindAnnotation(of_pod, container, config_.tolerate_missing_annotation);
  if (!annotation) return false;
  const auto value = ParseBool(annotation->value);
  if (value) return *value;
  return InvalidArgument("annotation {} must be true or false, not \"{}\"",
                         Printable(annotation->name), Printable(annotation->value));
}

Status DefaultValidator::CheckRequired(const Proposal& proposal,
                                       std::span<const std::string> present) const {
  const Annotations& of_pod = proposal.pod.annotations();
  RESMGR_ASSIGN_OR_RETURN(const bool tolerates,
                          ToleratesMissing(of_pod, proposal.container.name()));
  if (tolerates) return OkStatus();
  std::vector<std::string> missing = required_;
  if (const auto annotation =
          FindAnnotation(of_pod, proposal.container.name(), kRequiredPluginsAnnotation)) {
    RESMGR_ASSIGN_OR_RETURN(std::vector<std::string> names, ReadNames(*annotation));
    missing.insert(missing.end(), names.begin(), names.end());
  }
  if (missing.empty()) return OkStatus();
  const auto names = NamesOf(present);
  std::erase_if(missing, [&](const std::string& name) { return names.contains(name); });
  if (missing.empty()) return OkStatus();
  return FailedPrecondition("default validator: required plugins are missing: {}",
                            Printable(fmt::format("{}", fmt::join(missing, ", "))));
}

}  // namespace resmgr::nri
