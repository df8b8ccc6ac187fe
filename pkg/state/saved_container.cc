// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/saved_container.h"

#include <algorithm>
#include <span>

#include "pkg/api/message_numbers.h"
#include "pkg/api/state.pb.h"
#include "pkg/base/wire.h"
#include "pkg/kube/annotations.h"
#include "pkg/model/cpu_numbers.h"
#include "pkg/model/resource_fields.h"

namespace resmgr {
namespace {

// Encoded by hand with FieldWriter, since this runs on the loop for each container that is created:
// FieldWriter takes 397 instructions for a container, appending byte by byte took 697.
void Add(uint32_t field, const CpuNumber& number, FieldWriter& out) {
  if (number) out.Number(field, static_cast<uint64_t>(*number));
}

// The CPU numbers in three successive fields, of which `first` is the first.
template <typename Values>
void AddCpuNumbers(uint32_t first, const Values& values, FieldWriter& out) {
  ForEachCpuNumber([&](const CpuNumber& number) { Add(first++, number, out); }, values);
}

void Add(uint32_t field, const std::optional<std::string>& text, FieldWriter& out) {
  if (text) out.Bytes(field, *text);
}

template <typename Tag>
void Add(uint32_t field, const std::optional<IdSet<Tag>>& set, FieldWriter& out) {
  if (set) out.Bytes(field, set->ToString());
}

void AddNonZero(uint32_t field, int64_t number, FieldWriter& out) {
  if (number != 0) out.Number(field, static_cast<uint64_t>(number));
}

void AddNonEmpty(uint32_t field, std::string_view text, FieldWriter& out) {
  if (!text.empty()) out.Bytes(field, text);
}

// Shortcut: sets are usually empty and need not be formatted.
template <typename Tag>
void AddNonEmpty(uint32_t field, const IdSet<Tag>& set, FieldWriter& out) {
  if (!set.empty()) out.Bytes(field, set.ToString());
}

void AddResources(uint32_t field, const LinuxResources& resources, FieldWriter& out) {
  const size_t begin = out.Begin(field);
  for (const NumberField& number : kNumberFields)
    if (number.requested != nullptr) Add(number.cri_number, resources.*number.requested, out);
  Add(6, resources.cpuset_cpus, out);
  Add(7, resources.cpuset_mems, out);
  for (const auto& [size, limit] : resources.hugepage_limits) {
    const size_t entry = out.Begin(8);
    AddNonEmpty(1, size, out);
    AddNonZero(2, static_cast<int64_t>(limit), out);
    out.End(entry);
  }
  out.End(begin);
}

void AddRequirements(uint32_t field, const Requirements& requirements, FieldWriter& out) {
  const size_t begin = out.Begin(field);
  AddNonZero(1, requirements.cpu_request.value, out);
  AddNonZero(2, requirements.cpu_limit.value, out);
  AddNonZero(3, requirements.memory_request.value, out);
  AddNonZero(4, requirements.memory_limit.value, out);
  AddNonZero(5, requirements.memory_estimated ? 1 : 0, out);
  AddNonZero(6, requirements.cpu_of_pod ? 1 : 0, out);
  AddNonZero(7, requirements.memory_of_pod ? 1 : 0, out);
  out.End(begin);
}

void AddHint(uint32_t field, const LocalityHint& hint, FieldWriter& out) {
  const size_t begin = out.Begin(field);
  AddNonEmpty(1, hint.source, out);
  AddNonEmpty(2, hint.cpus, out);
  AddNonEmpty(3, hint.nodes, out);
  out.End(begin);
}

void AddEntry(uint32_t field, const StringMap::value_type& entry, FieldWriter& out) {
  const size_t begin = out.Begin(field);
  AddNonEmpty(1, entry.first, out);
  AddNonEmpty(2, entry.second, out);
  out.End(begin);
}

void AddOrigin(uint32_t field, const OriginView& origin, const Container& container,
               FieldWriter& out) {
  const Pod& pod = origin.pod;
  const size_t begin = out.Begin(field);
  AddNonEmpty(1, origin.runtime, out);
  AddNonEmpty(2, pod.id.value(), out);
  AddNonEmpty(3, pod.uid.value(), out);
  AddNonEmpty(4, pod.name, out);
  AddNonEmpty(5, pod.namespace_name, out);
  AddNonEmpty(6, pod.runtime_handler, out);
  AddResources(7, pod.overhead, out);
  for (const auto& entry : pod.annotations)
    if (IsForDecisions(entry.first)) AddEntry(8, entry, out);
  AddNonEmpty(9, container.name, out);
  AddNonZero(10, container.attempt, out);
  Add(11, container.placement.cpus, out);
  Add(12, container.placement.mems, out);
  for (const auto& entry : pod.labels)
    AddEntry(13, entry, out);
  for (const auto& entry : container.labels)
    AddEntry(14, entry, out);
  out.End(begin);
}

void AddSetLater(uint32_t field, const NumbersSetLater& later, FieldWriter& out) {
  const size_t begin = out.Begin(field);
  AddCpuNumbers(1, later, out);
  AddNonZero(4, later.reported ? 1 : 0, out);
  out.End(begin);
}

// Whether the container shares CPUs whose number happens to be the number that it asks for.
bool SharesOfItsSize(const Requirements& requirements, const Placement& placement) {
  const MilliCpu request = requirements.cpu_request;
  if (!request.IsWhole() || !placement.cpus) return false;
  const int size = placement.cpus->size();
  return size == request.Whole() && placement.exclusive.size() != size;
}

void AddAsked(uint32_t field, const AskedView& asked, FieldWriter& out) {
  const Placement& placement = asked.placement;
  const size_t begin = out.Begin(field);
  AddResources(1, asked.requested, out);
  AddRequirements(2, asked.requirements, out);
  const size_t place = out.Begin(3);
  AddNonEmpty(1, placement.exclusive, out);
  AddCpuNumbers(2, placement, out);
  AddNonEmpty(5, placement.pool, out);
  AddNonEmpty(6, placement.reason, out);
  AddNonEmpty(7, placement.counted_mems, out);
  if (SharesOfItsSize(asked.requirements, placement)) AddNonEmpty(8, *placement.cpus, out);
  out.End(place);
  out.End(begin);
}

void AddTexts(uint32_t field, const AskedTexts::Texts& texts, FieldWriter& out) {
  for (const auto& [key, value] : texts) {
    const size_t begin = out.Begin(field);
    AddNonEmpty(1, key, out);
    Add(2, value, out);
    out.End(begin);
  }
}

void AddTexts(uint32_t field, const AskedTexts& texts, FieldWriter& out) {
  const size_t begin = out.Begin(field);
  AddTexts(1, texts.labels, out);
  AddTexts(2, texts.annotations, out);
  out.End(begin);
}

uint64_t ToSaved(QosClass qos) {
  switch (qos) {
    case QosClass::kGuaranteed:
      return state::GUARANTEED;
    case QosClass::kBurstable:
      return state::BURSTABLE;
    case QosClass::kBestEffort:
      return state::BEST_EFFORT;
  }
  return state::UNKNOWN;
}

std::optional<QosClass> Decode(state::QosClass qos) {
  if (qos == state::GUARANTEED) return QosClass::kGuaranteed;
  if (qos == state::BURSTABLE) return QosClass::kBurstable;
  if (qos == state::BEST_EFFORT) return QosClass::kBestEffort;
  return std::nullopt;
}

LinuxResources Decode(const state::Resources& in) {
  LinuxResources resources;
  for (const NumberField& number : kNumberFields) {
    if (number.requested != nullptr) resources.*number.requested = NumberAt(in, number.cri_number);
  }
  if (in.has_cpuset_cpus()) resources.cpuset_cpus = in.cpuset_cpus();
  if (in.has_cpuset_mems()) resources.cpuset_mems = in.cpuset_mems();
  for (const state::HugepageLimit& entry : in.hugepage_limits())
    resources.hugepage_limits[entry.page_size()] = entry.limit();
  return resources;
}

StringMap Decode(const google::protobuf::RepeatedPtrField<state::Annotation>& in) {
  std::vector<StringMap::value_type> entries;
  for (const state::Annotation& entry : in)
    entries.emplace_back(entry.key(), entry.value());
  return StringMap(entries);
}

StatusOr<SavedOrigin> Decode(const state::Origin& in) {
  SavedOrigin origin;
  origin.runtime = in.runtime();
  origin.pod.id = PodSandboxId(in.pod_id());
  origin.pod.uid = PodUid(in.pod_uid());
  origin.pod.name = in.pod_name();
  origin.pod.namespace_name = in.pod_namespace();
  origin.pod.runtime_handler = in.runtime_handler();
  origin.pod.overhead = Decode(in.overhead());
  origin.pod.annotations = Decode(in.annotations());
  origin.pod.labels = Decode(in.labels());
  origin.container_labels = Decode(in.container_labels());
  origin.container_name = in.container_name();
  origin.attempt = in.attempt();
  if (in.has_cpus()) {
    RESMGR_ASSIGN_OR_RETURN(origin.cpus, CpuSet::Parse(in.cpus()));
  }
  if (in.has_mems()) {
    RESMGR_ASSIGN_OR_RETURN(origin.mems, NodeSet::Parse(in.mems()));
  }
  return origin;
}

Requirements Decode(const state::Requirements& in) {
  return {.cpu_request = MilliCpu{in.cpu_request()},
          .cpu_limit = MilliCpu{in.cpu_limit()},
          .memory_request = Bytes{in.memory_request()},
          .memory_limit = Bytes{in.memory_limit()},
          .memory_estimated = in.memory_estimated(),
          .cpu_of_pod = in.cpu_of_pod(),
          .memory_of_pod = in.memory_of_pod()};
}

// Reads the CPU numbers of a message.
template <typename Message, typename Values>
void DecodeCpuNumbers(const Message& in, Values& values) {
  if (in.has_cpu_shares()) values.cpu_shares = in.cpu_shares();
  if (in.has_cpu_quota()) values.cpu_quota = in.cpu_quota();
  if (in.has_cpu_period()) values.cpu_period = in.cpu_period();
}

// Reads a message with the fields of a placement.
template <typename Message>
StatusOr<SavedPlace> DecodePlace(const Message& in) {
  SavedPlace place;
  Placement& placement = place.placement;
  RESMGR_ASSIGN_OR_RETURN(placement.exclusive, CpuSet::Parse(in.exclusive()));
  DecodeCpuNumbers(in, placement);
  placement.pool = in.pool();
  placement.reason = in.reason();
  RESMGR_ASSIGN_OR_RETURN(placement.counted_mems, NodeSet::Parse(in.counted_mems()));
  RESMGR_ASSIGN_OR_RETURN(place.shared_cpus, CpuSet::Parse(in.shared_cpus()));
  return place;
}

StatusOr<AskedUpdate> Decode(const state::Asked& in) {
  AskedUpdate asked{.requested = Decode(in.requested()), .requirements = Decode(in.requirements())};
  RESMGR_ASSIGN_OR_RETURN(asked.place, DecodePlace(in.place()));
  return asked;
}

NumbersSetLater Decode(const state::SetLater& in) {
  NumbersSetLater later;
  DecodeCpuNumbers(in, later);
  later.reported = in.reported();
  return later;
}

template <typename Texts>
AskedTexts::Texts DecodeTexts(const Texts& in) {
  AskedTexts::Texts texts;
  for (const state::Text& text : in) {
    texts.emplace_back(text.key(),
                       text.has_value() ? std::optional<std::string>(text.value()) : std::nullopt);
  }
  return texts;
}

AskedTexts Decode(const state::Texts& in) {
  return {.labels = DecodeTexts(in.labels()), .annotations = DecodeTexts(in.annotations())};
}

void Restore(const AskedTexts::Texts& asked, StringMap& reported) {
  if (asked.empty()) return;
  std::vector<StringMap::value_type> texts;
  for (const auto& [key, value] : reported) {
    if (std::ranges::find(asked, key, &AskedTexts::Texts::value_type::first) == asked.end()) {
      texts.emplace_back(key, value);
    }
  }
  for (const auto& [key, value] : asked) {
    if (value) texts.emplace_back(key, *value);
  }
  reported = StringMap(std::span(texts));
}

}  // namespace

void AskedTexts::Restore(StringMap& reported_labels, StringMap& reported_annotations) const {
  resmgr::Restore(labels, reported_labels);
  resmgr::Restore(annotations, reported_annotations);
}

void EncodeSaved(const Container& container, QosClass qos, std::string& out,
                 const SavedExtras& extras) {
  const Placement& placement = container.placement;
  FieldWriter fields(out);
  AddResources(1, container.requested, fields);
  AddRequirements(2, container.requirements, fields);
  AddNonEmpty(3, placement.exclusive, fields);
  AddCpuNumbers(4, placement, fields);
  AddNonEmpty(7, placement.pool, fields);
  AddNonEmpty(8, placement.reason, fields);
  for (const LocalityHint& hint : container.hints)
    AddHint(9, hint, fields);
  fields.Number(10, ToSaved(qos));
  AddNonEmpty(11, container.needs_note, fields);
  AddNonZero(12, container.cpus_bound ? 1 : 0, fields);
  AddNonZero(13, container.mems_bound ? 1 : 0, fields);
  if (extras.origin != nullptr) AddOrigin(14, *extras.origin, container, fields);
  AddSetLater(15, container.set_later, fields);
  if (extras.asked != nullptr) AddAsked(16, *extras.asked, fields);
  if (extras.texts != nullptr && !extras.texts->empty()) AddTexts(17, *extras.texts, fields);
  AddNonZero(18, extras.qos_derived ? 1 : 0, fields);
  AddNonEmpty(19, placement.counted_mems, fields);
  if (SharesOfItsSize(container.requirements, placement)) {
    AddNonEmpty(20, *placement.cpus, fields);
  }
  AddNonEmpty(21, extras.created_name, fields);
}

StatusOr<SavedContainer> DecodeSaved(std::string_view bytes) {
  state::Container in;
  const bool parsed = in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  const std::optional<QosClass> qos = Decode(in.qos());
  if (!parsed || !in.has_requested() || !in.has_requirements() || !qos) {
    return InvalidArgument("not a saved container");
  }
  SavedContainer saved;
  saved.requested = Decode(in.requested());
  saved.requirements = Decode(in.requirements());
  RESMGR_ASSIGN_OR_RETURN(SavedPlace place, DecodePlace(in));
  saved.placement = std::move(place.placement);
  saved.shared_cpus = place.shared_cpus;
  for (const state::LocalityHint& entry : in.hints()) {
    LocalityHint& hint = saved.hints.emplace_back();
    hint.source = entry.source();
    RESMGR_ASSIGN_OR_RETURN(hint.cpus, CpuSet::Parse(entry.cpus()));
    RESMGR_ASSIGN_OR_RETURN(hint.nodes, NodeSet::Parse(entry.nodes()));
  }
  saved.qos = *qos;
  saved.needs_note = in.needs_note();
  saved.cpus_bound = in.cpus_bound();
  saved.mems_bound = in.mems_bound();
  if (in.has_origin()) {
    RESMGR_ASSIGN_OR_RETURN(saved.origin, Decode(in.origin()));
    saved.origin->pod.qos = saved.qos;
  }
  saved.set_later = Decode(in.set_later());
  if (in.has_asked()) {
    RESMGR_ASSIGN_OR_RETURN(saved.asked, Decode(in.asked()));
  }
  saved.texts = Decode(in.texts());
  saved.qos_derived = in.qos_derived();
  saved.created_name = in.created_name();
  return saved;
}

std::string EncodeStated(const Pod& pod) {
  std::string bytes;
  {
    FieldWriter fields(bytes);
    AddResources(1, pod.overhead, fields);
    AddResources(2, pod.resources, fields);
  }
  return bytes;
}

Status AddStated(std::string_view bytes, Pod& pod) {
  state::StatedPod in;
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("not what was stated of a pod");
  }
  pod.overhead = Decode(in.overhead());
  pod.resources = Decode(in.resources());
  return OkStatus();
}

std::string EncodeAsked(const Pod& asked, const AskedTexts& texts) {
  std::string bytes;
  {
    FieldWriter fields(bytes);
    fields.Number(1, asked.qos_derived ? uint64_t{state::UNKNOWN} : ToSaved(asked.qos));
    AddNonEmpty(2, asked.cgroup_parent, fields);
    if (!texts.empty()) AddTexts(3, texts, fields);
  }
  return bytes;
}

Status RestoreAsked(std::string_view bytes, Pod& reported) {
  state::AskedPod in;
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("not what was asked for of a pod");
  }
  const std::optional<QosClass> qos = Decode(in.qos());
  reported.qos = qos.value_or(QosClass::kBestEffort);
  reported.qos_derived = !qos;
  reported.cgroup_parent = in.cgroup_parent();
  Decode(in.texts()).Restore(reported.labels, reported.annotations);
  return OkStatus();
}

std::string EncodeRefusal(const SavedRefusal& refusal) {
  std::string bytes;
  {
    FieldWriter fields(bytes);
    const auto time =
        std::chrono::duration_cast<std::chrono::milliseconds>(refusal.time.time_since_epoch());
    AddNonZero(1, time.count(), fields);
    AddNonEmpty(2, refusal.pod.value(), fields);
    fields.Number(3, ToSaved(refusal.qos));
    AddRequirements(4, refusal.requirements, fields);
    AddNonEmpty(5, refusal.reason, fields);
    AddNonEmpty(6, refusal.error, fields);
    Add(7, refusal.cpus, fields);
    Add(8, refusal.mems, fields);
    AddNonEmpty(9, refusal.exclusive, fields);
  }
  return bytes;
}

StatusOr<SavedRefusal> DecodeRefusal(std::string_view bytes) {
  state::Refusal in;
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !in.has_requirements()) {
    return InvalidArgument("not a saved refusal");
  }
  const std::chrono::milliseconds time(in.time_ms());
  SavedRefusal refusal{.time = std::chrono::system_clock::time_point(time),
                       .pod = PodSandboxId(in.pod_id()),
                       .qos = Decode(in.qos()).value_or(QosClass::kBestEffort),
                       .requirements = Decode(in.requirements()),
                       .reason = in.reason(),
                       .error = in.error()};
  if (in.has_cpus()) {
    RESMGR_ASSIGN_OR_RETURN(refusal.cpus, CpuSet::Parse(in.cpus()));
  }
  if (in.has_mems()) {
    RESMGR_ASSIGN_OR_RETURN(refusal.mems, NodeSet::Parse(in.mems()));
  }
  RESMGR_ASSIGN_OR_RETURN(refusal.exclusive, CpuSet::Parse(in.exclusive()));
  return refusal;
}

}  // namespace resmgr
