// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/overlay.h"

#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "pkg/model/resource_fields.h"
#include "pkg/model/unified_files.h"

namespace resmgr {
namespace {

template <typename T>
void Take(const std::optional<T>& from, std::optional<T>& to) {
  if (from) to = from;
}

StringMap Edited(const StringMap& map, const KeyedEdits<std::string>& edits) {
  if (edits.empty()) return map;
  std::vector<StringMap::value_type> entries;
  for (const auto& entry : map)
    if (edits.Find(entry.first) == nullptr) entries.push_back(entry);
  for (const auto& edit : edits)
    if (edit.value) entries.emplace_back(edit.key, *edit.value);
  return StringMap(std::span(entries));
}

// If entries of a list have the same key, all but the first are dropped, as in the message itself.
// `keep` adds an entry that stays to the edited list, `put` what an edit sets.
template <typename Value, typename List, typename KeyOf, typename Keep, typename Put>
void Edit(const KeyedEdits<Value>& edits, const KeyOf& key_of, const Keep& keep, const Put& put,
          List& list) {
  if (edits.empty()) return;
  std::unordered_set<std::string_view> placed;
  List edited;
  for (auto&& entry : list) {
    const auto* const edit = edits.Find(key_of(entry));
    if (edit == nullptr) {
      keep(entry, edited);
    } else if (edit->value && placed.insert(edit->key).second) {
      put(*edit, edited);
    }
  }
  for (const auto& edit : edits)
    if (edit.value && !placed.contains(edit.key)) put(edit, edited);
  list = std::move(edited);
}

template <typename Entry>
void EditEntries(const KeyedEdits<Entry>& edits, std::string Entry::*key,
                 std::vector<Entry>& list) {
  Edit(
      edits, [key](const Entry& entry) -> std::string_view { return entry.*key; },
      [](Entry& entry, auto& edited) { edited.push_back(std::move(entry)); },
      [](const auto& edit, auto& edited) { edited.push_back(*edit.value); }, list);
}

void EditEnvironment(const KeyedEdits<std::string>& edits, Environment& environment) {
  Edit(
      edits, [](const EnvironmentVariable& variable) { return variable.name; },
      [](const EnvironmentVariable& variable, Environment& edited) {
        edited.Add(variable.name, variable.value);
      },
      [](const auto& edit, Environment& edited) { edited.Add(edit.key, *edit.value); },
      environment);
}

void OverlayResources(const Adjustment& so_far, LinuxResources& resources) {
  const LinuxResources values = AsResources(so_far.values);
  resources = Merged(std::move(resources), values);
  if (so_far.wide() == nullptr) return;
  const WideAdjustment& wide = *so_far.wide();
  if (so_far.clears_cpus()) resources.cpuset_cpus.reset();
  if (so_far.clears_mems()) resources.cpuset_mems.reset();
  for (const NumberField& number : kNumberFields) {
    if (number.requested != nullptr && !number.decided()) {
      Take(wide.*number.changed, resources.*number.requested);
    }
  }
  for (const auto& [size, limit] : wide.hugepage_limits) {
    if (limit) {
      resources.hugepage_limits[size] = *limit;
    } else {
      resources.hugepage_limits.erase(size);
    }
  }
  for (const auto& [file, value] : wide.unified) {
    const auto said = value ? FieldOfFile(file, *value) : std::nullopt;
    if (said) Unset(*said, resources);
  }
}

void OverlayDetails(const WideAdjustment& wide, ContainerDetails& details) {
  EditEnvironment(wide.environment, details.environment);
  EditEntries(wide.mounts, &Mount::container_path, details.mounts);
  EditEntries(wide.devices, &Device::container_path, details.devices);
  EditEntries(wide.resource_limits, &ResourceLimit::type, details.resource_limits);
  if (wide.args) {
    details.command = *wide.args;
    details.args.clear();
  }
  Take(wide.memory_swap_limit, details.memory_swap_limit);
  details.unified = Edited(details.unified, wide.unified);
  details.cdi_devices.insert(details.cdi_devices.end(), wide.cdi_devices.begin(),
                             wide.cdi_devices.end());
  details.hooks.insert(details.hooks.end(), wide.hooks.begin(), wide.hooks.end());
  if (wide.cgroup_parent) details.cgroup_parent = *wide.cgroup_parent;
  if (wide.seccomp_profile) {
    // A policy in the request itself is in no file.
    const bool is_file = wide.seccomp_profile->starts_with('/');
    details.security.seccomp = {.kind = SeccompProfile::Kind::kLocalhost,
                                .path = is_file ? *wide.seccomp_profile : ""};
  }
}

}  // namespace

void Overlay(const Adjustment& so_far, CreateRequest& create) {
  OverlayResources(so_far, create.resources);
  if (so_far.wide() == nullptr) return;
  create.labels = Edited(create.labels, so_far.wide()->labels);
  create.annotations = Edited(create.annotations, so_far.wide()->annotations);
}

void Overlay(const Adjustment& so_far, ContainerDetails& details) {
  if (so_far.wide() != nullptr) OverlayDetails(*so_far.wide(), details);
}

std::shared_ptr<const ContainerDetails> Overlaid(const Adjustment& so_far,
                                                 std::shared_ptr<const ContainerDetails> details) {
  if (so_far.wide() == nullptr) return details;
  auto changed = std::make_shared<ContainerDetails>(*details);
  Overlay(so_far, *changed);
  return changed;
}

}  // namespace resmgr
