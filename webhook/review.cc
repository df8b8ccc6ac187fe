// SPDX-License-Identifier: Apache-2.0
#include "webhook/review.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <absl/strings/escaping.h>
#include <fmt/format.h>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/model/resources_annotation.h"
#include "webhook/pod_patch.h"

namespace resmgr::webhook {
namespace {

// A write of the subresource "status" may change annotations. For "resize", "ephemeralcontainers"
// and similar ones the API server keeps the stored annotations.
bool IsPodToAnnotate(const AdmissionRequest& request) {
  return request.kind == "Pod" && request.group.empty() &&
         (request.sub_resource.empty() || request.sub_resource == "status") &&
         (request.operation == "CREATE" || request.operation == "UPDATE");
}

// The pod whose spec will be stored: at a write of "status" the API server ignores the request's
// spec.
const nlohmann::json& StoredPod(const AdmissionRequest& request) {
  return request.sub_resource == "status" ? request.old_object : request.object;
}

AdmissionResponse Decide(const AdmissionRequest& request) {
  AdmissionResponse response;
  if (!IsPodToAnnotate(request)) return response;
  auto patch = PatchOfPod(request.object, StoredPod(request));
  std::string problem =
      patch.ok() ? std::move(patch->warning) : std::string(Message(patch.status()));
  if (patch.ok()) response.patch = std::move(patch->patch);
  if (!problem.empty()) {
    response.warning = fmt::format("no annotation {}: {}", kResourcesAnnotation, problem);
  }
  return response;
}

using nlohmann::json;

Status DecodeRequest(json& members, AdmissionRequest& request) {
  RESMGR_ASSIGN_OR_RETURN(request.uid, StringAt(members, "uid"));
  if (request.uid.empty()) return InvalidArgument("it has no uid");
  RESMGR_ASSIGN_OR_RETURN(const json* kind, ObjectAt(members, "kind"));
  if (kind == nullptr) return InvalidArgument("it has no kind");
  RESMGR_ASSIGN_OR_RETURN(request.group, StringAt(*kind, "group"));
  RESMGR_ASSIGN_OR_RETURN(request.kind, StringAt(*kind, "kind"));
  RESMGR_ASSIGN_OR_RETURN(request.sub_resource, StringAt(members, "subResource"));
  RESMGR_ASSIGN_OR_RETURN(request.operation, StringAt(members, "operation"));
  const auto take = [&members](const char* name, json& target) {
    const auto found = members.find(name);
    if (found != members.end()) target = std::move(*found);
  };
  take("object", request.object);
  take("oldObject", request.old_object);
  return OkStatus();
}

// The members that are kept: a member with everything below it, or with the listed members only.
// The rule of an array applies to its elements.
struct Rule {
  std::string_view name;
  std::span<const Rule> members{};
  bool whole = false;
};

constexpr Rule kContainer[] = {{"name"}, {.name = "resources", .whole = true}};
constexpr Rule kSpec[] = {{"initContainers", kContainer}, {"containers", kContainer}};
constexpr Rule kMetadata[] = {{.name = "annotations", .whole = true}};
constexpr Rule kPod[] = {{"metadata", kMetadata}, {"spec", kSpec}};
constexpr Rule kKind[] = {{"group"}, {"kind"}};
constexpr Rule kRequest[] = {{"uid"},       {"kind", kKind},  {"subResource"},
                             {"operation"}, {"object", kPod}, {"oldObject", kPod}};
constexpr Rule kReviewMembers[] = {{"apiVersion"}, {"kind"}, {"request", kRequest}};
constexpr Rule kReview = {"", kReviewMembers};

// The deepest needed value, request.object.spec.containers[].resources.limits.cpu, has depth 8.
constexpr size_t kMaxDepth = 16;
// Limit of the estimated memory, not of text. etcd stores objects up to 1.5 MiB.
constexpr size_t kMaxKeptBytes = size_t{24} << 20;
// Estimated memory of a value besides its text: itself, its allocation, its node in a map.
constexpr size_t kValueBytes = 48;
constexpr size_t kMemberBytes = 96;

const Rule* FindMember(const Rule& rule, std::string_view name) {
  if (rule.whole) return &rule;
  for (const Rule& member : rule.members) {
    if (member.name == name) return &member;
  }
  return nullptr;
}

// Builds the tree of kept values while the parser reads the text.
class Keeper final : public nlohmann::json_sax<json> {
 public:
  json Take() { return std::move(root_); }
  bool too_large() const { return kept_bytes_ > kMaxKeptBytes; }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t&) override { return Add(value); }
  bool binary(binary_t&) override { return Add(nullptr); }
  bool string(string_t& value) override {
    if (Slot* const slot = NextSlot()) {
      kept_bytes_ += value.size();
      *slot->value = std::move(value);
    }
    return !too_large();
  }

  bool start_object(size_t) override { return Open(json::object()); }
  bool start_array(size_t) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    if (skipped_ > 0) return true;
    const Slot& parent = open_.back();
    member_rule_ = FindMember(*parent.rule, name);
    if (member_rule_ == nullptr) return true;
    kept_bytes_ += kMemberBytes + name.size();
    member_ = &(*parent.value)[name];
    return !too_large();
  }

  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  // The place of a value in the tree, and its rule.
  struct Slot {
    json* value = nullptr;
    const Rule* rule = nullptr;
  };

  // The slot of the next value; nullptr when it is left out. Counts its memory.
  Slot* NextSlot() {
    if (skipped_ > 0) return nullptr;
    if (open_.empty()) {
      next_ = {&root_, &kReview};
    } else if (const Slot& parent = open_.back(); parent.value->is_array()) {
      parent.value->push_back(nullptr);
      next_ = {&parent.value->back(), parent.rule};
    } else if (member_rule_ != nullptr) {
      next_ = {member_, member_rule_};
    } else {
      return nullptr;
    }
    kept_bytes_ += kValueBytes;
    return &next_;
  }

  bool Add(json value) {
    if (const Slot* const slot = NextSlot()) *slot->value = std::move(value);
    return !too_large();
  }

  bool Open(json empty) {
    Slot* const slot = open_.size() < kMaxDepth ? NextSlot() : nullptr;
    if (slot == nullptr) {
      ++skipped_;
    } else {
      *slot->value = std::move(empty);
      open_.push_back(*slot);
    }
    return !too_large();
  }

  bool Close() {
    skipped_ > 0 ? static_cast<void>(--skipped_) : open_.pop_back();
    return true;
  }

  json root_;
  // The kept objects and arrays that are not closed yet. A growing array moves its elements, but
  // only when none of them is open, so the pointers stay valid.
  std::vector<Slot> open_;
  Slot next_;
  json* member_ = nullptr;  // used if member_rule_ is set
  const Rule* member_rule_ = nullptr;
  size_t skipped_ = 0;  // open objects and arrays that are left out
  size_t kept_bytes_ = 0;
};

}  // namespace

HttpReply ReviewAdmission(std::string_view body) {
  const auto request = DecodeAdmissionReview(body);
  if (!request.ok()) {
    return {400, "text/plain", fmt::format("{}\n", Message(request.status()))};
  }
  return {200, "application/json", EncodeAdmissionReview(*request, Decide(*request)),
          /*review=*/true};
}

StatusOr<AdmissionRequest> DecodeAdmissionReview(std::string_view text) {
  RESMGR_ASSIGN_OR_RETURN(json review, ReadReview(text));
  if (!review.is_object()) return InvalidArgument("the request is not a JSON object");
  AdmissionRequest request;
  RESMGR_ASSIGN_OR_RETURN(const std::string kind, StringAt(review, "kind"));
  if (kind != "AdmissionReview") {
    return InvalidArgument("kind is \"{}\", not AdmissionReview", Printable(kind, 64));
  }
  RESMGR_ASSIGN_OR_RETURN(request.api_version, StringAt(review, "apiVersion"));
  if (request.api_version != "admission.k8s.io/v1" &&
      request.api_version != "admission.k8s.io/v1beta1") {
    return InvalidArgument("apiVersion \"{}\" is not one of admission.k8s.io/v1 and v1beta1",
                           Printable(request.api_version, 64));
  }
  const auto members = review.find("request");
  if (members == review.end() || !members->is_object()) {
    return InvalidArgument("the review has no request");
  }
  const Status status = DecodeRequest(*members, request);
  if (!status.ok()) return Annotate(status, "request");
  return request;
}

std::string EncodeAdmissionReview(const AdmissionRequest& request,
                                  const AdmissionResponse& response) {
  json answer = {{"uid", request.uid}, {"allowed", true}};
  if (!response.patch.empty()) {
    answer["patchType"] = "JSONPatch";
    // Go's []byte is base64 in JSON.
    answer["patch"] = absl::Base64Escape(response.patch);
  }
  if (!response.warning.empty()) answer["warnings"] = json::array({response.warning});
  const json review = {{"apiVersion", request.api_version},
                       {"kind", "AdmissionReview"},
                       {"response", std::move(answer)}};
  // JsonText replaces invalid UTF-8: a warning may have been cut within a character.
  return JsonText(review);
}

StatusOr<json> ReadReview(std::string_view text) {
  Keeper keeper;
  if (json::sax_parse(text, &keeper)) return keeper.Take();
  if (keeper.too_large()) {
    return InvalidArgument("the annotations and resources in the request take more than {} MiB",
                           kMaxKeptBytes >> 20);
  }
  return InvalidArgument("the request is not JSON");
}

}  // namespace resmgr::webhook
