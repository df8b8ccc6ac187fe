// SPDX-License-Identifier: Apache-2.0
#include "pkg/cpufile/cpu_files.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/cpufile/cpu_file_directory.h"
#include "pkg/model/container.h"

namespace resmgr {
namespace {

// The annotation of a pod that turns the files of its containers, or of one of them, on or off.
constexpr std::string_view kAnnotation = "cpu-file";

std::string NameOf(const Container& container) {
  return CpuFileDirectoryName(container.pod_id.value(), container.name, container.attempt);
}

// The set in a request's list; `otherwise` if there is no valid list.
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

std::vector<Problem> CpuFiles::problems() const {
  if (!writer_.failing()) return {};
  const auto old = static_cast<int64_t>(behind());
  return {{.kind = "state",
           .message =
               fmt::format("files that tell containers their CPUs cannot be written{}",
                           old == 0 ? "" : fmt::format(": {} out of date", CountIs(old, "file"))),
           .objects = {options_.directory},
           .next = "journalctl -u cri-resmgr -n 50"}};
}

bool CpuFiles::Wants(const Pod& pod, const Container& container) const {
  if (config_.containers == CpuFilesConfig::Containers::kNone) return false;
  if (!options_.pinning.WhyUnbound(pod).empty()) return false;
  // A placeholder for a missing name is not unique: another daemon may make up the same one.
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

// The container's directory; empty if it has none. A directory with the container's present name
// may belong to another container, which had this name before it was renamed.
std::string CpuFiles::DirectoryOf(const Container& container) const {
  std::string name = NameOf(container);
  if (renamed_.empty()) return name;
  const auto renamed = renamed_.find(container.id);
  if (renamed != renamed_.end()) return renamed->second;
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) return name;
  const auto holder = renamed_.find(entry->second.holder);
  return holder != renamed_.end() && holder->second == name ? "" : name;
}

void CpuFiles::OnRenamed(const Act& act, std::string_view created_name) {
  const Container& container = act.container;
  // The directory keeps the name from the creation, however often the container is renamed.
  if (renamed_.contains(container.id)) return;
  std::string name =
      IsPlaceholderName(created_name)
          ? ""
          : CpuFileDirectoryName(container.pod_id.value(), created_name, container.attempt);
  auto entry = entries_.find(name);
  // The directories are not listed yet, so the container may have a file.
  if (entry == entries_.end() && !found_ && !name.empty()) {
    entry = entries_.emplace(name, Entry()).first;
  }
  const bool known = entry != entries_.end();
  if (known && entry->second.holder.empty() && !entry->second.being_created)
    entry->second.holder = container.id;
  // Otherwise there is no file, or it is another container's.
  if (!known || entry->second.holder != container.id) name.clear();
  renamed_.insert_or_assign(container.id, std::move(name));
}

void CpuFiles::OnPlaced(const Act& act) {
  // A container with an id was created earlier and keeps its file.
  if (!act.container.id.empty()) return;
  if (!Wants(act.pod, act.container)) return;
  const std::string name = DirectoryOf(act.container);
  if (name.empty()) {
    const std::string by_name = NameOf(act.container);
    const std::string why = by_name.empty()
                                ? "its name is too long for a directory"
                                : "a container that had its name at its creation has that file";
    log_.Warn("container {} gets no file with its CPUs: {}",
              Printable(FullName(act.pod, act.container.name)), why);
    if (!by_name.empty()) NoteNone(by_name, why);
    return;
  }
  Entry& entry = entries_[name];
  entry.being_created = true;
  entry.first_text = TextOf(act.container, Place::Of(act.container.placement));
}

void CpuFiles::OnReleased(const Act& act) {
  if (act.container.id.empty()) none_yet_.erase(NameOf(act.container));
  if (entries_.empty() || !act.container.id.empty()) return;
  const auto entry = entries_.find(DirectoryOf(act.container));
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
  // The call may have a shortened sandbox id, so directories are searched by its beginning.
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
  const std::string name = DirectoryOf(act.container);
  auto entry = entries_.find(name);
  if (entry == entries_.end()) {
    // The directories are not listed yet, so the container may have a file.
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
  if (entries_.empty()) {
    renamed_.erase(act.container.id);
    return;
  }
  const auto entry = entries_.find(DirectoryOf(act.container));
  renamed_.erase(act.container.id);
  if (entry == entries_.end()) return;
  // Another container of this name uses the file now.
  const ContainerId& holder = entry->second.holder;
  if (entry->second.being_created || (!holder.empty() && holder != act.container.id)) return;
  Erase(entry);
}

void CpuFiles::OnListed(const Snapshot& all) {
  if (!none_.empty() || !renamed_.empty()) {
    std::set<ContainerId> ids;
    all.ForEachContainer(
        [&ids](const Pod&, const Container& container) { ids.insert(container.id); });
    const auto gone = [&ids](const auto& each) { return !ids.contains(each.first); };
    std::erase_if(none_, gone);
    std::erase_if(renamed_, gone);
  }
  if (!found_ || entries_.empty()) return;
  std::set<std::string, std::less<>> listed;
  all.ForEachContainer(
      [&](const Pod&, const Container& container) { listed.insert(DirectoryOf(container)); });
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
  for (auto& [id, name] : renamed_)
    if (!entries_.contains(name)) name.clear();
}

void CpuFiles::Erase(Entries::iterator entry) {
  if (entry->second.made) writer_.Remove(entry->first);
  entries_.erase(entry);
}

}  // namespace resmgr
