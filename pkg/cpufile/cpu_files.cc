// SPDX-License-Identifier: Apache-2.0
#include "pkg/cpufile/cpu_files.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/cpufile/cpu_file_text.h"
#include "pkg/model/placeholder_name.h"

namespace resmgr {
namespace {

// Of a pod: whether its containers, or one of them, get a file.
constexpr std::string_view kAnnotation = "cpu-file";

std::string NameOf(const Container& container) {
  return CpuFileDirectoryName(container.pod_id.value(), container.name, container.attempt);
}

// A list of a request, which may be anything.
template <typename Set>
Set SetOf(const std::optional<std::string>& list, const Set& otherwise) {
  if (!list || list->empty()) return otherwise;
  const StatusOr<Set> set = Set::Parse(*list);
  return set.ok() ? *set : otherwise;
}

}  // namespace

CpuFiles::CpuFiles(Options options)
    : options_(std::move(options)),
      log_(GetLogger("cpu-files")),
      stage_(static_cast<CpuFileStage::Files&>(*this)),
      writer_(options_.loop, options_.directory, options_.writer) {}

CpuFiles::~CpuFiles() {
  if (in_pipeline_) options_.pipeline.Remove(stage_);
}

void CpuFiles::Configure(const CpuFilesConfig& config) {
  config_ = config;
  const bool wanted = config.containers != CpuFilesConfig::Containers::kNone;
  if (wanted != in_pipeline_) {
    wanted ? options_.pipeline.Add(stage_) : options_.pipeline.Remove(stage_);
    in_pipeline_ = wanted;
  }
  if (std::exchange(looked_, true)) return;
  writer_.List([this](const std::vector<std::string>& names) { OnFound(names); });
}

size_t CpuFiles::size() const {
  return static_cast<size_t>(
      std::ranges::count_if(entries_, [](const auto& entry) { return entry.second.made; }));
}

bool CpuFiles::Wants(const Pod& pod, const Container& container) const {
  if (config_.containers == CpuFilesConfig::Containers::kNone) return false;
  if (!options_.pinning.WhyUnbound(pod).empty()) return false;
  // A file has the name that its container has for its whole life.
  if (IsPlaceholderName(container.name)) return false;
  return ReadBoolAnnotation(pod.annotations, kAnnotation, container.name)
      .value_or(config_.containers == CpuFilesConfig::Containers::kAll);
}

std::string CpuFiles::TextOf(const Container& container, const Place& place) const {
  const LinuxResources& requested = container.requested;
  return CpuFileText(place.cpus.value_or(SetOf(requested.cpuset_cpus, options_.cpus)),
                     place.exclusive,
                     place.mems.value_or(SetOf(requested.cpuset_mems, options_.mems)));
}

void CpuFiles::OnPlaced(const Act& act) {
  // One that is started again has what its creation gave it.
  if (!act.container.id.empty()) return;
  if (!Wants(act.pod, act.container)) return;
  const std::string name = NameOf(act.container);
  if (name.empty()) {
    log_.Warn("container {} gets no file with its CPUs: its name is too long for a directory",
              Printable(FullName(act.pod, act.container.name)));
    return;
  }
  Entry& entry = entries_[name];
  entry.being_created = true;
  entry.first_text = TextOf(act.container, Place::Of(act.container.placement));
}

void CpuFiles::OnReleased(const Act& act) {
  if (act.container.id.empty()) none_yet_.erase(NameOf(act.container));
  if (entries_.empty() || !act.container.id.empty()) return;
  const auto entry = entries_.find(NameOf(act.container));
  if (entry == entries_.end()) return;
  entry->second.being_created = false;
  if (!entry->second.made) entries_.erase(entry);
}

std::string CpuFiles::NameFor(const CreateRequest& request) {
  if (entries_.empty()) return "";
  std::string name = CpuFileDirectoryName(request.pod_id.value(), request.name, request.attempt);
  if (name.empty()) return "";
  const auto entry = entries_.find(name);
  if (entry != entries_.end()) return entry->second.being_created ? name : "";
  // By the beginning of the sandbox's id.
  const std::string prefix = CpuFileDirectoryPrefix(request.pod_id.value());
  const std::string suffix = CpuFileDirectorySuffix(request.name, request.attempt);
  for (auto at = entries_.lower_bound(prefix);
       at != entries_.end() && at->first.starts_with(prefix); ++at) {
    if (at->second.being_created && at->first.ends_with(suffix)) return at->first;
  }
  return "";
}

Mount CpuFiles::MountOf(const std::string& name) const {
  return {.container_path = config_.mount_path,
          .host_path = options_.directory + "/" + name,
          .read_only = true,
          .selinux_relabel = true};
}

void CpuFiles::Make(const std::string& name, std::function<void(const Status&)> done) {
  Entry& entry = entries_[name];
  entry.made = true;
  entry.written = entry.first_text;
  writer_.Make(name, entry.first_text, std::move(done));
}

void CpuFiles::Abandon(const std::string& name) {
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) return;
  entry->second.being_created = false;
  if (entry->second.holder.empty()) return Erase(entry);
  Write(name, entry->second);
}

void CpuFiles::NoteNone(const std::string& name, std::string why) {
  none_yet_.insert_or_assign(name, std::move(why));
}

std::string CpuFiles::WhyNone(const ContainerId& id) const {
  const auto found = none_.find(id);
  return found == none_.end() ? "" : found->second;
}

void CpuFiles::TakeNone(const Container& container) {
  if (none_yet_.empty()) return;
  if (auto noted = none_yet_.extract(NameOf(container)); !noted.empty()) {
    none_.insert_or_assign(container.id, std::move(noted.mapped()));
  }
}

void CpuFiles::OnInForce(const Act& act, const Place& place) {
  if (!act.container.id.empty()) TakeNone(act.container);
  const bool unknown_here = found_ && entries_.empty();
  if (unknown_here || act.container.id.empty()) return;
  const std::string name = NameOf(act.container);
  auto entry = entries_.find(name);
  if (entry == entries_.end()) {
    // Whether it has a file is not known yet.
    if (found_ || name.empty()) return;
    entry = entries_.emplace(name, Entry()).first;
  }
  Entry& known = entry->second;
  const bool of_former = known.being_created && known.holder == act.container.id;
  if (!of_former) known.being_created = false;
  if (found_ && !known.made) {
    entries_.erase(entry);
    return;
  }
  known.holder = act.container.id;
  known.text = TextOf(act.container, place);
  if (known.made && !of_former) Write(name, known);
}

void CpuFiles::Write(const std::string& name, Entry& entry) {
  if (std::exchange(entry.written, entry.text) != entry.text) writer_.Replace(name, entry.text);
}

void CpuFiles::OnRemoved(const Act& act) {
  none_.erase(act.container.id);
  if (entries_.empty()) return;
  const auto entry = entries_.find(NameOf(act.container));
  if (entry == entries_.end()) return;
  // Another one has its name.
  const ContainerId& holder = entry->second.holder;
  if (entry->second.being_created || (!holder.empty() && holder != act.container.id)) return;
  Erase(entry);
}

void CpuFiles::OnListed(const Snapshot& all) {
  if (!none_.empty()) {
    std::set<ContainerId> ids;
    all.ForEachContainer(
        [&ids](const Pod&, const Container& container) { ids.insert(container.id); });
    std::erase_if(none_, [&ids](const auto& each) { return !ids.contains(each.first); });
  }
  if (!found_ || entries_.empty()) return;
  std::set<std::string, std::less<>> listed;
  all.ForEachContainer(
      [&listed](const Pod&, const Container& container) { listed.insert(NameOf(container)); });
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (!listed.contains(entry->first)) Erase(entry);
    entry = next;
  }
}

void CpuFiles::OnFound(const std::vector<std::string>& names) {
  found_ = true;
  for (const std::string& name : names) {
    Entry& entry = entries_[name];
    if (!std::exchange(entry.made, true) && !entry.text.empty()) Write(name, entry);
  }
  std::erase_if(entries_, [](const auto& entry) {
    return !entry.second.made && !entry.second.being_created;
  });
}

void CpuFiles::Erase(Entries::iterator entry) {
  if (entry->second.made) writer_.Remove(entry->first);
  entries_.erase(entry);
}

}  // namespace resmgr
