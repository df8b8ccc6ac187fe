// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_merge.h"

#include <cstdint>
#include <set>

#include <google/protobuf/arena.h>

#include "pkg/api/message_numbers.h"
#include "pkg/base/parse.h"
#include "pkg/hooks/hook_messages.h"
#include "pkg/model/resource_fields.h"
#include "pkg/model/unified_files.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr::hooks {
namespace {

constexpr int64_t kLowestOomScoreAdj = -1000;
constexpr int64_t kHighestOomScoreAdj = 1000;

// Whether this number in an answer is a change.
bool MeansSomething(Field field, int64_t wanted, AnswerStyle style) {
  if (field == Field::kOomScoreAdj) {
    return (wanted != 0 || style == AnswerStyle::kEcho) && wanted >= kLowestOomScoreAdj &&
           wanted <= kHighestOomScoreAdj;
  }
  return wanted > 0 || (wanted < 0 && field == Field::kCpuQuota);
}

// New or different entries of the answer, sorted by key, since a protobuf map has no order.
std::map<std::string_view, std::string_view> Different(const HookMap& sent, const HookMap& answer) {
  std::map<std::string_view, std::string_view> different;
  for (const auto& [key, value] : answer)
    if (!HasEntry(sent, key, value)) different.emplace(key, value);
  return different;
}

// For maps of which the pipeline drops nothing.
bool IsNeverDropped(std::string_view) {
  return false;
}

template <typename Set>
Status CheckList(std::string_view what, const std::string& list, const std::string& sent) {
  // A list that the server only repeats is the client's or an earlier server's, and is not checked
  // here.
  if (list.empty() || list == sent) return OkStatus();
  const auto set = Set::Parse(list);
  if (!set.ok()) return Annotate(set.status(), what);
  if (set->empty()) return InvalidArgument("{}: \"{}\" has no member", what, Printable(list));
  return OkStatus();
}

}  // namespace

void HookOwners::Note(Field field, std::string_view key, const std::string& server) {
  auto [owner, added] = owners_.try_emplace({field, std::string(key)}, server);
  if (added || owner->second == server) return;
  conflicts_.push_back({.change = {.field = field, .key = std::string(key)},
                        .former = std::exchange(owner->second, server),
                        .later = server});
}

void HookOwners::Forget(Field field, std::string_view key) {
  owners_.erase({field, std::string(key)});
}

std::string HookOwners::Of(const FieldChange& change) const {
  // The field may have been set by a file in `unified`.
  auto found = owners_.find({Field::kUnified, FileOf(change)});
  if (found == owners_.end()) found = owners_.find({change.field, change.key});
  return found == owners_.end() ? std::string() : found->second;
}

void HookMerge::AddMap(const Answer& from, Field field, const HookMap& answer, HookMap& sent,
                       KeyedEdits<std::string> WideAdjustment::*edits,
                       bool (*dropped)(std::string_view key)) {
  for (const auto& [key, value] : Different(sent, answer)) {
    (changes_.Wide().*edits).Set(key, std::string(value));
    if (dropped(key)) continue;
    from.Note(field, key);
    sent[std::string(key)] = std::string(value);
  }
}

void HookMerge::AddCgroupParent(const Answer& from, const std::string& answer, std::string& sent) {
  if (answer.empty() || answer == sent) return;
  changes_.Wide().cgroup_parent = answer;
  from.Note(Field::kCgroupParent);
  sent = answer;
}

PodHookMerge::PodHookMerge(api::PodSandboxHookRequest request, PodResources resources)
    : request_(std::move(request)) {
  if (resources == PodResources::kPassedOver) return;
  api::ContainerResourceHookRequest of_pause;
  *of_pause.mutable_container_resources() = request_.resources();
  resources_.emplace(HookPoint::kPreCreateContainer, std::move(of_pause));
}

Status PodHookMerge::AddResources(const std::string& server,
                                  const api::LinuxContainerResources& answer) {
  api::ContainerResourceHookResponse of_pause;
  *of_pause.mutable_container_resources() = answer;
  RESMGR_RETURN_IF_ERROR(resources_->Add(server, AnswerStyle::kSparse, of_pause));
  *request_.mutable_resources() = resources_->request().container_resources();
  for (const FieldChange& change : resources_->changes().Changes())
    owners_.Note(change.field, change.key, resources_->owners().Of(change));
  return OkStatus();
}

Adjustment PodHookMerge::TakeChanges() {
  if (resources_) changes_.Merge(resources_->TakeChanges());
  return std::move(changes_);
}

Status PodHookMerge::Take(const HookServerSettings& server, const std::string& answer) {
  api::PodSandboxHookResponse parsed;
  if (!parsed.ParseFromString(answer)) return Internal("its answer is malformed");
  return Add(server.file, parsed);
}

Status PodHookMerge::Add(const std::string& server, const api::PodSandboxHookResponse& answer) {
  if (resources_ && answer.has_resources()) {
    RESMGR_RETURN_IF_ERROR(AddResources(server, answer.resources()));
  }
  const Answer from{.server = server, .style = AnswerStyle::kSparse, .owners = owners_};
  AddMap(from, Field::kLabels, answer.labels(), *request_.mutable_labels(), &WideAdjustment::labels,
         IsKubeletsOwn);
  AddMap(from, Field::kAnnotations, answer.annotations(), *request_.mutable_annotations(),
         &WideAdjustment::annotations, IsKubeletsOwn);
  AddCgroupParent(from, answer.cgroup_parent(), *request_.mutable_cgroup_parent());
  return OkStatus();
}

std::string ContainerHookMerge::Encoded() const {
  std::string encoded = beside_.pod;
  AppendEnvironment(beside_.environment, encoded);
  request_.AppendToString(&encoded);
  return encoded;
}

std::optional<std::string> ContainerHookMerge::WithoutRepeatedEnvironment(
    std::string_view answer) const {
  SentVariables sent(request_.container_envs().begin(), request_.container_envs().end());
  if (beside_.environment != nullptr) {
    sent.reserve(beside_.environment->size());
    // If several variables have one name, servers see the last one.
    for (const auto& [name, value] : *beside_.environment)
      sent.insert_or_assign(name, value);
  }
  return hooks::WithoutRepeatedEnvironment(answer, std::move(sent));
}

void ContainerHookMerge::MoveEnvironmentIntoRequest() {
  if (beside_.environment == nullptr) return;
  HookMap& variables = *request_.mutable_container_envs();
  for (const auto& [name, value] : *beside_.environment)
    variables[std::string(name)] = value;
  beside_.environment = nullptr;
}

Status ContainerHookMerge::Take(const HookServerSettings& server, const std::string& answer) {
  // An arena frees the answer with its dozens of variables at once.
  google::protobuf::Arena arena;
  auto& parsed =
      *google::protobuf::Arena::CreateMessage<api::ContainerResourceHookResponse>(&arena);
  const std::optional<std::string> rest = WithoutRepeatedEnvironment(answer);
  if (!parsed.ParseFromString(rest ? *rest : answer)) return Internal("its answer is malformed");
  return Add(server.file, server.style, parsed);
}

Status ContainerHookMerge::Add(const std::string& server, AnswerStyle style,
                               const api::ContainerResourceHookResponse& answer) {
  const bool creates = point_ == HookPoint::kPreCreateContainer;
  if (!creates && point_ != HookPoint::kPreUpdateContainerResources) return OkStatus();
  if (!answer.container_envs().empty()) MoveEnvironmentIntoRequest();
  RESMGR_RETURN_IF_ERROR(Check(answer));
  const Answer from{.server = server, .style = style, .owners = owners_};
  AddMap(from, Field::kAnnotations, answer.container_annotations(),
         *request_.mutable_container_annotations(), &WideAdjustment::annotations, IsKubeletsOwn);
  if (answer.has_container_resources()) AddResources(from, answer.container_resources());
  if (!creates) return OkStatus();
  AddCgroupParent(from, answer.pod_cgroup_parent(), *request_.mutable_pod_cgroup_parent());
  AddEnvironment(from, answer.container_envs());
  return OkStatus();
}

Status ContainerHookMerge::Check(const api::ContainerResourceHookResponse& answer) const {
  const auto& sent = request_.container_resources();
  const auto& wanted = answer.container_resources();
  RESMGR_RETURN_IF_ERROR(
      CheckList<CpuSet>("cpuset_cpus", wanted.cpuset_cpus(), sent.cpuset_cpus()));
  RESMGR_RETURN_IF_ERROR(
      CheckList<NodeSet>("cpuset_mems", wanted.cpuset_mems(), sent.cpuset_mems()));
  for (const auto& [name, value] : answer.container_envs()) {
    const bool good = !name.empty() && name.find('=') == std::string::npos;
    if (!good && !HasEntry(request_.container_envs(), name, value)) {
      return InvalidArgument("\"{}\" is not a valid name of an environment variable",
                             Printable(name));
    }
  }
  return OkStatus();
}

void ContainerHookMerge::AddResources(const Answer& from,
                                      const api::LinuxContainerResources& answer) {
  api::LinuxContainerResources& sent = *request_.mutable_container_resources();
  std::vector<Field> said;
  for (const NumberField& number : kNumberFields) {
    const int64_t wanted = NumberAt(answer, number.cri_number).value_or(0);
    if (wanted == NumberAt(sent, number.cri_number).value_or(0)) continue;
    if (!MeansSomething(number.field, wanted, from.style)) continue;
    NumberOf(changes_, number) = wanted;
    SetNumberAt(sent, number.cri_number, wanted);
    from.Note(number.field);
    said.push_back(number.field == Field::kCpuPeriod ? Field::kCpuQuota : number.field);
  }
  AddSets(from, answer);
  AddHugepages(from, answer);
  AddMap(from, Field::kUnified, answer.unified(), *sent.mutable_unified(), &WideAdjustment::unified,
         owner_ == PlacementOwner::kPolicy ? IsPlacementFile : IsNeverDropped);
  for (const Field field : said)
    RemoveFilesOf(field, from.server);
}

// Removes files that former servers set: they would override this server's number.
void ContainerHookMerge::RemoveFilesOf(Field field, const std::string& server) {
  if (changes_.wide() == nullptr) return;
  std::vector<std::string> files;
  for (const auto& edit : changes_.wide()->unified) {
    const auto says = edit.value ? FieldOfFile(edit.key, *edit.value) : std::nullopt;
    if (!says || says->field != field) continue;
    if (owners_.Of({Field::kUnified, edit.key}) != server) files.push_back(edit.key);
  }
  for (const std::string& file : files) {
    changes_.Wide().unified.Remove(file);
    request_.mutable_container_resources()->mutable_unified()->erase(file);
    owners_.Forget(Field::kUnified, file);
  }
}

void ContainerHookMerge::AddSets(const Answer& from, const api::LinuxContainerResources& answer) {
  const auto take = [&]<typename Set>(Field field, const std::string& wanted, std::string& sent,
                                      std::optional<Set>& value, bool WideAdjustment::*clears) {
    const bool clear = wanted.empty();
    if (wanted == sent || (clear && from.style == AnswerStyle::kSparse)) return;
    value.reset();
    // Cannot fail: Check has parsed the list before.
    if (!clear) value = *Set::Parse(wanted);
    if (clear || changes_.wide() != nullptr) changes_.Wide().*clears = clear;
    if (owner_ == PlacementOwner::kPolicy) return;
    from.Note(field);
    sent = wanted;
  };
  api::LinuxContainerResources& sent = *request_.mutable_container_resources();
  take(Field::kCpusetCpus, answer.cpuset_cpus(), *sent.mutable_cpuset_cpus(), changes_.values.cpus,
       &WideAdjustment::clear_cpus);
  take(Field::kCpusetMems, answer.cpuset_mems(), *sent.mutable_cpuset_mems(), changes_.values.mems,
       &WideAdjustment::clear_mems);
}

void ContainerHookMerge::AddHugepages(const Answer& from,
                                      const api::LinuxContainerResources& answer) {
  auto& sent = *request_.mutable_container_resources()->mutable_hugepage_limits();
  std::map<std::string, api::HugepageLimit*> by_size;
  for (api::HugepageLimit& limit : sent)
    by_size[limit.page_size()] = &limit;
  std::map<std::string, uint64_t> wanted;  // the last limit for a size counts
  for (const api::HugepageLimit& limit : answer.hugepage_limits())
    wanted[limit.page_size()] = limit.limit();
  for (const auto& [size, bytes] : wanted) {
    const auto had = by_size.find(size);
    if (had != by_size.end() && had->second->limit() == bytes) continue;
    changes_.Wide().hugepage_limits.Set(size, bytes);
    from.Note(Field::kHugepageLimits, size);
    api::HugepageLimit& limit = had == by_size.end() ? *sent.Add() : *had->second;
    limit.set_page_size(size);
    limit.set_limit(bytes);
  }
}

void ContainerHookMerge::AddEnvironment(const Answer& from, const HookMap& answer) {
  HookMap& sent = *request_.mutable_container_envs();
  if (answer.empty()) return;
  if (from.style == AnswerStyle::kEcho) {
    std::set<std::string> missing;
    for (const auto& [name, value] : sent)
      if (!answer.contains(name)) missing.insert(name);
    for (const std::string& name : missing) {
      changes_.Wide().environment.Remove(name);
      from.Note(Field::kEnvironment, name);
      sent.erase(name);
    }
  }
  AddMap(from, Field::kEnvironment, answer, sent, &WideAdjustment::environment, IsNeverDropped);
}

}  // namespace resmgr::hooks
