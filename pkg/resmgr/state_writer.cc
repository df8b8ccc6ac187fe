// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/state_writer.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/model/container.h"
#include "pkg/model/cpu_numbers.h"

namespace resmgr {
namespace {

// How long changes are gathered: less than the time from a container's creation to its first run.
constexpr std::chrono::milliseconds kGather{20};

constexpr StateStore::PodNote kAsked = StateStore::PodNote::kAsked;
constexpr StateStore::PodNote kCreation = StateStore::PodNote::kCreation;
constexpr StateStore::PodNote kOthers = StateStore::PodNote::kOthers;
constexpr StateStore::PodNote kStated = StateStore::PodNote::kStated;

// The name of a creation's note identifies the container: pod id, attempt and name. Pod and attempt
// have no line break.
constexpr char kOfNode[] = "node";  // used as the pod's id for notes about the node
constexpr char kPartEnd = '\n';
constexpr size_t kLongestSavedName = 1024;

PodSandboxId NameOfCreation(const PodSandboxId& pod, std::string_view name, uint32_t attempt) {
  return PodSandboxId(fmt::format("{}{}{}{}{}", pod.value(), kPartEnd, attempt, kPartEnd, name));
}

PodSandboxId NameOfCreation(const ContainerRecord& record) {
  return NameOfCreation(record.pod->pod.id, record.CreatedName(), record.container.attempt);
}

bool Keeps(const ContainerRecord& record) {
  const Container& container = record.container;
  if (container.state != ContainerState::kExited) return !record.superseded;
  return container.cpus_bound || container.mems_bound;
}

}  // namespace

StateWriter::StateWriter(EventLoop& loop, StateStore* state, ContainerStore& store, bool renames)
    : loop_(loop),
      state_(state),
      store_(store),
      renames_(renames),
      calls_(state == nullptr ? own_calls_ : state->open_calls()) {
  if (state_ != nullptr) state_->BeforeFlush([this] { SaveAll(); });
}

StateWriter::~StateWriter() {
  if (state_ == nullptr) return;
  calls_.Write();
  SaveAll();
  state_->BeforeFlush(nullptr);
}

void StateWriter::MarkChanged(ContainerRecord& record) {
  if (state_ == nullptr) return;
  NoteOthers(record.container.set_later);
  if (record.unsaved) return;
  record.unsaved = true;
  unsaved_.push_back(record.container.key);
  SaveSoon();
}

void StateWriter::SaveMarked() {
  if (state_ != nullptr) SaveAll();
}

void StateWriter::SaveSoon() {
  if (timer_ == nullptr) timer_ = loop_.After(kGather, [this] { SaveAll(); });
}

void StateWriter::SaveAll() {
  timer_.reset();
  for (const ContainerKey key : unsaved_) {
    if (ContainerRecord* const record = store_.Find(key)) Save(*record);
  }
  unsaved_.clear();
  state_->Commit();
}

void StateWriter::Save(ContainerRecord& record) {
  if (!std::exchange(record.unsaved, false)) return;
  if (record.container.id.empty() || !Keeps(record)) return;
  if (record.container.state != ContainerState::kExited) return PutConfirmed(record);
  // The numbers of an exited container's former placement are saved so that, after a restart, other
  // reported numbers show an update by another client.
  CopyCpuNumbers(record.FormerPlacement(), record.container.placement);
  PutConfirmed(record);
  record.container.placement = {};
}

// Saves the container without changing a saved update of an earlier daemon: while the container's
// runtime is away, it is not known whether that update has arrived.
void StateWriter::PutUnchanged(const ContainerRecord& record) {
  const auto saved = record.kept ? Find(record.container.id) : std::nullopt;
  if (!saved || !saved->asked) return Put(record, nullptr);
  Placement place = saved->asked->place.placement;
  const CpuSet& shared = saved->asked->place.shared_cpus;
  if (!shared.empty()) place.cpus = shared;
  const AskedView asked{saved->asked->requested, saved->asked->requirements, place};
  Put(record, &asked);
}

void StateWriter::PutConfirmed(ContainerRecord& record) {
  if (record.updates.empty()) return PutUnchanged(record);
  // Saves the confirmed values as the present ones: a value that the runtime may still refuse must
  // not count as in force after a restart.
  Container& container = record.container;
  ConfirmedRequest& confirmed = *record.confirmed;
  const bool placed = confirmed.placement && record.Placeable();
  // `asked` refers to members that have the new request and its place after `swap`.
  const AskedView asked{confirmed.requested, confirmed.needs,
                        placed ? *confirmed.placement : container.placement};
  const auto swap = [&] {
    std::swap(container.requested, confirmed.requested);
    std::swap(container.requirements, confirmed.needs);
    if (placed) std::swap(container.placement, *confirmed.placement);
  };
  swap();
  Put(record, &asked);
  swap();
}

void StateWriter::Put(const ContainerRecord& record, const AskedView* asked) {
  const Pod& pod = record.pod->pod;
  const OriginView origin{.runtime = store_.RuntimeOf(pod), .pod = pod};
  state_->Put(record.container.id, record.container, pod.qos,
              {.origin = origin.runtime.empty() ? nullptr : &origin,
               .asked = asked,
               .texts = record.texts.get(),
               .qos_derived = pod.qos_derived,
               .created_name = renames_ ? record.CreatedName() : std::string_view()});
  // Erased in the same commit in which the record is saved, so that a kill leaves one of the two.
  EraseCreation(record);
}

void StateWriter::EraseCreation(const ContainerRecord& record) {
  if (state_ == nullptr || !state_->HasNotes()) return;
  state_->EraseNote(kCreation, NameOfCreation(record));
}

void StateWriter::NoteOthers(const NumbersSetLater& later) {
  if (HasCpuNumbers(later) && !OthersSetNumbers())
    state_->PutNote(kOthers, PodSandboxId(kOfNode), "1");
}

bool StateWriter::OthersSetNumbers() const {
  return state_ != nullptr && state_->FindNote(kOthers, PodSandboxId(kOfNode)).has_value();
}

void StateWriter::SaveUpdate(ContainerRecord& record) {
  if (state_ == nullptr) return;
  NoteOthers(record.container.set_later);
  // This update replaces the earlier daemon's saved one, which PutUnchanged would keep.
  if (record.kept) state_->Erase(record.container.id);
  record.unsaved = true;
  Save(record);
  state_->Commit();
}

void StateWriter::SaveCreation(const Pod& pod, const Container& container,
                               const AskedTexts& texts) {
  if (state_ == nullptr || container.name.size() > kLongestSavedName) return;
  // Not saved, since no list ever shows such a name.
  if (IsPlaceholderName(container.name)) return;
  std::string saved;
  EncodeSaved(container, pod.qos, saved, {.texts = &texts, .qos_derived = pod.qos_derived});
  NoteOthers(container.set_later);
  state_->PutNote(kCreation, NameOfCreation(pod.id, container.name, container.attempt), saved);
  state_->Commit();
}

std::optional<SavedContainer> StateWriter::FindCreation(const PodSandboxId& pod,
                                                        std::string_view name,
                                                        uint32_t attempt) const {
  if (state_ == nullptr) return std::nullopt;
  const auto note = state_->FindNote(kCreation, NameOfCreation(pod, name, attempt));
  if (!note) return std::nullopt;
  StatusOr<SavedContainer> saved = DecodeSaved(*note);
  return saved.ok() ? std::optional(*std::move(saved)) : std::nullopt;
}

// A note is kept while the outcome of the creation may be unknown: if the pod exists, and no saved
// container with this name and attempt has an id.
bool StateWriter::IsCreationOpen(std::string_view name) const {
  const size_t end = name.find(kPartEnd);
  const PodRecord* const pod = store_.FindPod(PodSandboxId(name.substr(0, end)));
  if (pod == nullptr || IsPlaceholderName(name.substr(name.rfind(kPartEnd) + 1))) return false;
  return std::ranges::none_of(pod->containers, [&](ContainerKey key) {
    const ContainerRecord& known = *store_.Find(key);
    return !known.container.id.empty() && !known.unsaved && NameOfCreation(known).value() == name;
  });
}

void StateWriter::EndCall(Call call, const ContainerId& id) {
  calls_.End(call, id);
  WriteEndsSoon();
}

void StateWriter::EndUpdate(OpenCalls::Key key) {
  calls_.End(key);
  WriteEndsSoon();
}

void StateWriter::WriteEndsSoon() {
  if (!calls_.unwritten() || std::exchange(ends_posted_, true)) return;
  loop_.Post(lifetime_.Guard([this] {
    ends_posted_ = false;
    calls_.Write();
  }));
}

void StateWriter::EndCalls(const ContainerId& id) {
  EndCall(Call::kStart, id);
  EndCall(Call::kUpdate, id);
}

void StateWriter::Erase(const ContainerId& id) {
  EndCalls(id);
  if (state_ == nullptr) return;
  state_->Erase(id);
  SaveSoon();
}

void StateWriter::EraseUnlisted() {
  std::vector<ContainerId> known;
  for (const auto& [key, record] : store_.containers())
    known.push_back(record->container.id);
  calls_.Retain(known);
  if (state_ == nullptr) return;
  state_->Retain(
      [this](std::string_view id) { return store_.FindById(ContainerId(id)) != nullptr; });
  state_->Commit();
}

void StateWriter::SaveStated(const Pod& pod) {
  if (state_ == nullptr) return;
  state_->PutNote(kStated, pod.id, EncodeStated(pod));
  state_->Commit();
}

void StateWriter::SaveAsked(const Pod& pod, const AskedTexts& texts) {
  if (state_ == nullptr) return;
  state_->PutNote(kAsked, pod.id, EncodeAsked(pod, texts));
  state_->Commit();
}

Pod StateWriter::WithNotes(Pod listed) const {
  if (state_ == nullptr) return listed;
  if (const auto asked = state_->FindNote(kAsked, listed.id)) (void)RestoreAsked(*asked, listed);
  const std::optional<std::string> stated = state_->FindNote(kStated, listed.id);
  // Unreadable notes are ignored.
  if (stated) (void)AddStated(*stated, listed);
  return listed;
}

void StateWriter::ErasePod(const PodSandboxId& id) {
  if (state_ == nullptr) return;
  state_->EraseNote(kAsked, id);
  state_->EraseNote(kStated, id);
  state_->RetainNotes(kCreation, [&id](std::string_view name) {
    return name.substr(0, name.find(kPartEnd)) != id.value();
  });
  state_->Commit();
}

void StateWriter::EraseUnlistedPods() {
  if (state_ == nullptr) return;
  for (const StateStore::PodNote kind : {kAsked, kStated}) {
    state_->RetainNotes(
        kind, [this](std::string_view id) { return store_.FindPod(PodSandboxId(id)) != nullptr; });
  }
  state_->RetainNotes(kCreation, [this](std::string_view name) { return IsCreationOpen(name); });
  state_->Commit();
}

void StateWriter::ForEach(
    const std::function<void(std::string_view, const SavedContainer&)>& visit) const {
  if (state_ != nullptr) state_->ForEach(visit);
}

std::optional<SavedContainer> StateWriter::Find(const ContainerId& id) const {
  return state_ == nullptr ? std::nullopt : state_->Find(id);
}

}  // namespace resmgr
