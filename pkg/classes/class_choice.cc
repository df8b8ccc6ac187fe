// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_choice.h"

#include <array>
#include <optional>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/kube/annotations.h"

namespace resmgr {
namespace {

constexpr size_t kLongestName = 64;

// The annotation keys of a kind of classes; "": the kind has no key of this form.
struct ChoiceKeys {
  std::string_view kind;
  std::string_view key;          // with the domain of the policies
  std::string_view of_runtimes;  // in the container's annotations
  std::string_view of_pods;      // in the pod's, with "/pod" or "/container.NAME" behind it
};

constexpr std::array kChoiceKeys = {
    ChoiceKeys{"rdt", "rdtclass", "io.kubernetes.cri.rdt-class",
               "rdt.resources.beta.kubernetes.io"},
    ChoiceKeys{"blockio", "blockioclass", "io.kubernetes.cri.blockio-class",
               "blockio.resources.beta.kubernetes.io"},
    ChoiceKeys{"cpu", "cpu-class", "", ""}, ChoiceKeys{"scheduling", "scheduling-class", "", ""}};

struct Chosen {
  std::string key;
  std::string name;
  bool own = false;  // the annotation is for this container alone
};

std::optional<Chosen> FindPlain(const StringMap& annotations, std::string_view key, bool own) {
  const auto found = annotations.find(key);
  if (found == annotations.end()) return std::nullopt;
  return Chosen{std::string(key), std::string(Trim(found->second)), own};
}

StatusOr<std::optional<Chosen>> FindOfPolicies(const ClassQuestion& about, std::string_view key) {
  const auto found = FindAnnotation(about.pod.annotations, key, about.container);
  if (!found) return std::optional<Chosen>();
  const StatusOr<ConfigNode> value = ReadAnnotation(about.pod.annotations, key, about.container);
  if (!value.ok())
    return Annotate(value.status(), fmt::format("annotation {}", Printable(found->key, 256)));
  if (value->kind == ConfigNode::Kind::kNull && found->old_form) return std::optional<Chosen>();
  if (value->kind != ConfigNode::Kind::kScalar && value->kind != ConfigNode::Kind::kNull) {
    return InvalidArgument("annotation {}: it is not the name of a class",
                           Printable(found->key, 256));
  }
  return std::optional(
      Chosen{std::string(found->key), value->text,
             found->old_form || found->key.find("/container.") != std::string_view::npos});
}

// The choice by the annotation with the narrowest scope; nullopt if there is no annotation.
StatusOr<std::optional<Chosen>> FindChosen(const ChoiceKeys& keys, const ClassQuestion& about) {
  RESMGR_ASSIGN_OR_RETURN(std::optional<Chosen> best, FindOfPolicies(about, keys.key));
  const auto consider = [&best](std::optional<Chosen> other) {
    if (other && (!best || (other->own && !best->own))) best = std::move(other);
  };
  if (!keys.of_runtimes.empty()) {
    consider(FindPlain(about.annotations, keys.of_runtimes, true));
    consider(FindPlain(about.pod.annotations,
                       fmt::format("{}/container.{}", keys.of_pods, about.container), true));
    consider(FindPlain(about.pod.annotations, fmt::format("{}/pod", keys.of_pods), false));
  }
  return best;
}

Status CheckChosen(std::string_view kind, const Chosen& chosen,
                   const std::vector<KnownClass>& known, const ClassesConfig& config,
                   ClassChoice& choice) {
  const std::string shown = Printable(chosen.name, kLongestName);
  const auto found = std::ranges::find(known, chosen.name, &KnownClass::name);
  if (found == known.end()) {
    Status unknown = InvalidArgument("annotation {}: there is no class \"{}\" of the kind {}; {}",
                                     Printable(chosen.key, 256), shown, kind,
                                     ThereAre(known, &KnownClass::name));
    if (config.unknown == ClassesConfig::Unknown::kRefuse) return unknown;
    choice.note = Message(unknown);
    return OkStatus();
  }
  const bool denied =
      chosen.own ? found->denies_container_annotation : found->denies_pod_annotation;
  if (denied) {
    return InvalidArgument(
        "annotation {}: the class \"{}\" of the kind {} is not for annotations "
        "of {}",
        Printable(chosen.key, 256), shown, kind, chosen.own ? "containers" : "pods");
  }
  choice.name = chosen.name;
  choice.source = fmt::format("annotation {}", Printable(chosen.key, 256));
  choice.by_pod = true;
  return OkStatus();
}

}  // namespace

StatusOr<ClassChoice> ChooseClass(std::string_view kind, const ClassQuestion& about,
                                  const std::vector<KnownClass>& known,
                                  const ClassesConfig& config) {
  ClassChoice choice;
  const auto keys = std::ranges::find(kChoiceKeys, kind, &ChoiceKeys::kind);
  if (keys == kChoiceKeys.end()) return choice;
  // If the namespace may not choose, a malformed annotation is only noted.
  StatusOr<std::optional<Chosen>> found = FindChosen(*keys, about);
  const std::string name = found.ok() && *found ? (*found)->name : "";
  const bool allowed = config.Allows(kind, name, about.pod.namespace_name);
  // Then the annotation may be for classes of the runtime's own.
  const bool is_for_runtime = known.empty() && !keys->of_runtimes.empty();
  if (is_for_runtime && !allowed) return DefaultClass(about, known);
  if (!found.ok()) {
    if (allowed) return found.status();
    choice.note = Message(found.status());
  } else if (*found && !allowed) {
    choice.note =
        fmt::format("annotation {} ignored: namespace {} is not in classes.AllowedNamespaces.{}",
                    Printable((*found)->key, 256), Printable(about.pod.namespace_name), kind);
  } else if (*found && name.empty()) {
    choice.source = fmt::format("annotation {}", Printable((*found)->key, 256));
    return choice;
  } else if (*found) {
    RESMGR_RETURN_IF_ERROR(CheckChosen(kind, **found, known, config, choice));
    if (!choice.name.empty()) return choice;
  }
  ClassChoice without = DefaultClass(about, known);
  without.note = std::move(choice.note);
  return without;
}

ClassChoice DefaultClass(const ClassQuestion& about, const std::vector<KnownClass>& known) {
  if (!about.class_of_pool.empty()) {
    return {.name = std::string(about.class_of_pool), .source = fmt::format("pool {}", about.pool)};
  }
  const std::string_view qos = ToString(about.pod.qos);
  if (!about.by_qos || std::ranges::find(known, qos, &KnownClass::name) == known.end()) return {};
  return {.name = std::string(qos), .source = fmt::format("QoS class {}", qos)};
}

}  // namespace resmgr
