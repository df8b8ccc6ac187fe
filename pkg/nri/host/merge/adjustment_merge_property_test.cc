// SPDX-License-Identifier: Apache-2.0
// Compares random replies of random plugins with a model that knows fields, keys and owners, but no
// messages: both refuse the same replies and have the same result, the same container for the next
// plugin, the same updates of others and the same owners.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/host/merge/adjustment_merge.h"
#include "pkg/nri/testing/messages.h"
#include "test/support/seed.h"
#include "test/support/status_matchers.h"

namespace resmgr::nri {
namespace {

using Adjust = api::ContainerAdjustment;
using Entries = std::map<std::string, std::string>;  // by key; "" for fields without keys

// The form of a field in messages. Values are decimal numbers.
struct FieldForm {
  api::Field field = api::FIELD_NONE;
  bool removable = false;
  // A removal restores the container's original value, and is not in the result.
  bool restores = false;
  // A `key` with "-" in front is removed.
  std::function<void(Adjust&, const std::string& key, const std::string& value)> write;
  std::function<Entries(const Adjust&)> read;
  std::function<Entries(const api::Container&)> shown;
};

// The same for fields that updates have, too.
struct ResourceForm {
  api::Field field = api::FIELD_NONE;
  std::function<void(api::LinuxResources&, const std::string& key, const std::string& value)> write;
  std::function<Entries(const api::LinuxResources&)> read;
};

template <typename List, typename Key, typename Value>
Entries ReadList(const List& list, const Key& key, const Value& value) {
  Entries entries;
  for (const auto& entry : list) {
    const bool removed = key(entry).starts_with('-');
    EXPECT_TRUE(entries.emplace(key(entry), removed ? "" : value(entry)).second) << key(entry);
  }
  return entries;
}

Entries ReadMap(const google::protobuf::Map<std::string, std::string>& map) {
  return {map.begin(), map.end()};
}

Entries ReadEnvironment(const google::protobuf::RepeatedPtrField<std::string>& environment) {
  Entries entries;
  for (const std::string& entry : environment) {
    const size_t end = entry.find('=');
    EXPECT_TRUE(entries.emplace(entry.substr(0, end), entry.substr(end + 1)).second) << entry;
  }
  return entries;
}

Entries ReadRdt(const api::LinuxRdt& rdt) {
  Entries entries;
  if (rdt.remove()) entries["-"] = "";
  if (rdt.has_clos_id()) entries[""] = rdt.clos_id().value();
  return entries;
}

Entries Optional(bool is_set, const std::string& value) {
  return is_set ? Entries{{"", value}} : Entries();
}

template <typename Message>
Entries ReadMounts(const Message& message) {
  return ReadList(
      message.mounts(), [](const auto& mount) { return mount.destination(); },
      [](const auto& mount) { return mount.source(); });
}

template <typename Message>
Entries ReadDevices(const Message& message) {
  return ReadList(
      message.linux().devices(), [](const auto& device) { return device.path(); },
      [](const auto& device) { return std::to_string(device.minor()); });
}

template <typename Message>
Entries ReadNamespaces(const Message& message) {
  return ReadList(
      message.linux().namespaces(), [](const auto& space) { return space.type(); },
      [](const auto& space) { return space.path(); });
}

template <typename Message>
Entries ReadLimits(const Message& message) {
  return ReadList(
      message.rlimits(), [](const auto& limit) { return limit.type(); },
      [](const auto& limit) { return std::to_string(limit.hard()); });
}

template <typename Message>
Entries ReadCdi(const Message& message) {
  return ReadList(
      message.cdi_devices(), [](const auto& device) { return device.name(); },
      [](const auto&) { return std::string(); });
}

template <typename Message>
Entries ReadArgs(const Message& message) {
  return Optional(!message.args().empty(), message.args().empty() ? "" : message.args(0));
}

std::vector<ResourceForm> MakeResourceForms() {
  std::vector<ResourceForm> forms;
  forms.push_back({api::FIELD_CPUSHARES,
                   [](auto& resources, auto&, auto& value) {
                     resources.mutable_cpu()->mutable_shares()->set_value(std::stoull(value));
                   },
                   [](const auto& resources) {
                     return Optional(resources.cpu().has_shares(),
                                     std::to_string(resources.cpu().shares().value()));
                   }});
  forms.push_back(
      {api::FIELD_CPUSET_MEMS,
       [](auto& resources, auto&, auto& value) { resources.mutable_cpu()->set_mems(value); },
       [](const auto& resources) {
         return Optional(!resources.cpu().mems().empty(), resources.cpu().mems());
       }});
  forms.push_back({api::FIELD_HUGEPAGE_LIMITS,
                   [](auto& resources, auto& key, auto& value) {
                     api::HugepageLimit& limit = *resources.add_hugepage_limits();
                     limit.set_page_size(key);
                     limit.set_limit(std::stoull(value));
                   },
                   [](const auto& resources) {
                     return ReadList(
                         resources.hugepage_limits(),
                         [](const auto& limit) { return limit.page_size(); },
                         [](const auto& limit) { return std::to_string(limit.limit()); });
                   }});
  forms.push_back(
      {api::FIELD_CGROUPS_UNIFIED,
       [](auto& resources, auto& key, auto& value) { (*resources.mutable_unified())[key] = value; },
       [](const auto& resources) { return ReadMap(resources.unified()); }});
  return forms;
}

const std::vector<ResourceForm>& ResourceForms() {
  static const auto* const kForms = new std::vector<ResourceForm>(MakeResourceForms());
  return *kForms;
}

void AddLinuxForms(std::vector<FieldForm>& forms) {
  forms.push_back({api::FIELD_DEVICES, true, false,
                   [](auto& adjust, auto& key, auto& value) {
                     api::LinuxDevice& device = *adjust.mutable_linux()->add_devices();
                     device.set_path(key);
                     device.set_minor(std::stoll(value));
                   },
                   ReadDevices<Adjust>, ReadDevices<api::Container>});
  forms.push_back({api::FIELD_NAMESPACE, true, false,
                   [](auto& adjust, auto& key, auto& value) {
                     api::LinuxNamespace& space = *adjust.mutable_linux()->add_namespaces();
                     space.set_type(key);
                     space.set_path(value);
                   },
                   ReadNamespaces<Adjust>, ReadNamespaces<api::Container>});
  forms.push_back({api::FIELD_SYSCTL, true, false,
                   [](auto& adjust, auto& key, auto& value) {
                     (*adjust.mutable_linux()->mutable_sysctl())[key] =
                         key.starts_with('-') ? "" : value;
                   },
                   [](const auto& adjust) { return ReadMap(adjust.linux().sysctl()); },
                   [](const auto& container) { return ReadMap(container.linux().sysctl()); }});
  forms.push_back({api::FIELD_RDT_CLOS_ID, true, false,
                   [](auto& adjust, auto& key, auto& value) {
                     api::LinuxRdt& rdt = *adjust.mutable_linux()->mutable_rdt();
                     if (!key.empty()) return rdt.set_remove(true);
                     rdt.mutable_clos_id()->set_value(value);
                   },
                   [](const auto& adjust) { return ReadRdt(adjust.linux().rdt()); },
                   [](const auto& container) { return ReadRdt(container.linux().rdt()); }});
  for (const ResourceForm& form : ResourceForms()) {
    forms.push_back(
        {form.field, false, false,
         [write = form.write](auto& adjust, auto& key, auto& value) {
           write(*adjust.mutable_linux()->mutable_resources(), key, value);
         },
         [read = form.read](const auto& adjust) { return read(adjust.linux().resources()); },
         [read = form.read](const auto& container) {
           return read(container.linux().resources());
         }});
  }
}

std::vector<FieldForm> MakeForms() {
  std::vector<FieldForm> forms;
  forms.push_back({api::FIELD_ANNOTATIONS, true, false,
                   [](auto& adjust, auto& key, auto& value) {
                     (*adjust.mutable_annotations())[key] = key.starts_with('-') ? "" : value;
                   },
                   [](const auto& adjust) { return ReadMap(adjust.annotations()); },
                   [](const auto& container) { return ReadMap(container.annotations()); }});
  forms.push_back({api::FIELD_MOUNTS, true, false,
                   [](auto& adjust, auto& key, auto& value) {
                     api::Mount& mount = *adjust.add_mounts();
                     mount.set_destination(key);
                     mount.set_source(value);
                   },
                   ReadMounts<Adjust>, ReadMounts<api::Container>});
  forms.push_back({api::FIELD_ENV, true, false,
                   [](auto& adjust, auto& key, auto& value) {
                     api::KeyValue& variable = *adjust.add_env();
                     variable.set_key(key);
                     variable.set_value(value);
                   },
                   [](const auto& adjust) {
                     return ReadList(
                         adjust.env(), [](const auto& variable) { return variable.key(); },
                         [](const auto& variable) { return variable.value(); });
                   },
                   [](const auto& container) { return ReadEnvironment(container.env()); }});
  forms.push_back({api::FIELD_RLIMITS, false, false,
                   [](auto& adjust, auto& key, auto& value) {
                     api::POSIXRlimit& limit = *adjust.add_rlimits();
                     limit.set_type(key);
                     limit.set_hard(std::stoull(value));
                   },
                   ReadLimits<Adjust>, ReadLimits<api::Container>});
  forms.push_back({api::FIELD_CDI_DEVICES, false, false,
                   [](auto& adjust, auto& key, auto&) { adjust.add_cdi_devices()->set_name(key); },
                   ReadCdi<Adjust>, ReadCdi<api::Container>});
  forms.push_back(
      {api::FIELD_ARGS, true, true,
       [](auto& adjust, auto& key, auto& value) { adjust.add_args(key.empty() ? value : ""); },
       ReadArgs<Adjust>, ReadArgs<api::Container>});
  AddLinuxForms(forms);
  return forms;
}

const std::vector<FieldForm>& Forms() {
  static const auto* const kForms = new std::vector<FieldForm>(MakeForms());
  return *kForms;
}

const FieldForm& FormOf(api::Field field) {
  return *std::ranges::find(Forms(), field, &FieldForm::field);
}

struct Edit {
  api::Field field = api::FIELD_NONE;
  std::string key{};
  std::optional<std::string> value{};  // nullopt: removed

  // Removals first: a reply has at most one of a kind for each key.
  auto Order() const { return std::tuple(field, value.has_value(), key); }
  bool operator<(const Edit& other) const { return Order() < other.Order(); }
};

struct Update {
  std::string container;
  bool may_fail = false;
  std::set<Edit> edits{};
};

struct PluginReply {
  std::string plugin;
  std::set<Edit> edits{};
  bool hook = false;
  std::vector<Update> updates{};
};

constexpr std::string_view kContainer = "ctr";

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  size_t Below(size_t limit) { return random_() % limit; }
  bool OneIn(size_t times) { return Below(times) == 0; }

  PluginReply Reply(std::string plugin) {
    PluginReply reply{.plugin = std::move(plugin), .hook = OneIn(4)};
    for (size_t i = Below(6); i > 0; --i) {
      Edit edit = OfForm(Forms()[Below(Forms().size())].field);
      // Mostly it removes the values that it sets, so that later plugins are not always in
      // conflict.
      if (FormOf(edit.field).removable && !OneIn(3)) {
        reply.edits.insert({edit.field, edit.key, std::nullopt});
        if (OneIn(3)) continue;
      }
      reply.edits.insert(std::move(edit));
    }
    for (size_t i = Below(3); i > 0; --i) {
      Update update{.container = OneIn(40)  ? std::string(kContainer)
                                 : OneIn(3) ? "x"
                                            : "y",
                    .may_fail = OneIn(2)};
      const std::vector<ResourceForm>& forms = ResourceForms();
      for (size_t edits = Below(3); edits > 0; --edits)
        update.edits.insert(OfForm(forms[Below(forms.size())].field));
      reply.updates.push_back(std::move(update));
    }
    return reply;
  }

  std::mt19937_64& random() { return random_; }

 private:
  Edit OfForm(api::Field field) {
    const std::string key = IsKeyed(field) ? std::string(1, static_cast<char>('k' + Below(3))) : "";
    const std::string value = field == api::FIELD_CDI_DEVICES ? "" : std::to_string(Below(100));
    return {field, key, value};
  }

  std::mt19937_64 random_;
};

api::CreateContainerResponse ToMessage(const PluginReply& reply) {
  api::CreateContainerResponse message;
  for (const Edit& edit : reply.edits) {
    FormOf(edit.field)
        .write(*message.mutable_adjust(), (edit.value ? "" : "-") + edit.key,
               edit.value.value_or("0"));
  }
  if (reply.hook) message.mutable_adjust()->mutable_hooks()->add_poststop()->set_path(reply.plugin);
  for (const Update& update : reply.updates) {
    api::ContainerUpdate& added = *message.add_update();
    added.set_container_id(update.container);
    added.set_ignore_failure(update.may_fail);
    for (const Edit& edit : update.edits) {
      std::ranges::find(ResourceForms(), edit.field, &ResourceForm::field)
          ->write(*added.mutable_linux()->mutable_resources(), edit.key, *edit.value);
    }
  }
  return message;
}

// The model's state of one field or entry of one container.
struct Slot {
  std::string owner{};
  bool owner_removed = false;  // and has not set it since
  bool removed = false;
  std::optional<std::string> value{};
};

class Model {
 public:
  bool Add(const PluginReply& reply) {
    Model next = *this;
    if (!next.TakeAll(std::string(kContainer), reply.plugin, reply.edits)) return false;
    for (const Update& update : reply.updates) {
      if (update.container == kContainer) return false;
      if (update.edits.empty()) continue;
      Model after = next;
      if (after.TakeAll(update.container, reply.plugin, update.edits)) {
        next = std::move(after);
        const auto [place, is_new] = next.may_fail_.try_emplace(update.container, true);
        place->second = place->second && update.may_fail;
        if (is_new) next.updated_.push_back(update.container);
      } else if (!update.may_fail) {
        return false;
      }
    }
    if (reply.hook) next.hooks_.push_back(reply.plugin);
    *this = std::move(next);
    return true;
  }

  Entries Result(const std::string& container, const FieldForm& form) const {
    Entries entries;
    for (const auto& [key, slot] : Of(container, form.field)) {
      if (slot.removed && !form.restores) entries["-" + key] = "";
      if (slot.value) entries[key] = *slot.value;
    }
    return entries;
  }

  Entries Shown(const FieldForm& form, Entries container) const {
    for (const auto& [key, slot] : Of(std::string(kContainer), form.field)) {
      if (slot.removed && !form.restores) container.erase(key);
      if (slot.value) container[key] = *slot.value;
    }
    return container;
  }

  std::vector<OwnedField> Owned(const std::string& container) const {
    std::vector<OwnedField> owned;
    for (const auto& [place, slot] : slots_) {
      const auto& [of, field, key] = place;
      if (of != container) continue;
      owned.push_back(
          {.field = field, .key = key, .plugin = slot.owner, .removed = slot.owner_removed});
    }
    return owned;
  }

  const std::vector<std::string>& hooks() const { return hooks_; }
  const std::vector<std::string>& updated() const { return updated_; }
  bool MayFail(const std::string& container) const { return may_fail_.at(container); }

 private:
  bool TakeAll(const std::string& container, const std::string& plugin,
               const std::set<Edit>& edits) {
    for (const Edit& edit : edits) {
      const auto [place, is_new] = slots_.try_emplace({container, edit.field, edit.key});
      Slot& slot = place->second;
      if (!edit.value) {
        slot = Slot{.owner = plugin, .owner_removed = true, .removed = true};
        continue;
      }
      if (!is_new && !(slot.owner_removed && slot.owner == plugin)) return false;
      slot.owner = plugin;
      slot.owner_removed = false;
      slot.value = edit.value;
    }
    return true;
  }

  std::map<std::string, Slot> Of(const std::string& container, api::Field field) const {
    std::map<std::string, Slot> slots;
    for (const auto& [place, slot] : slots_)
      if (std::get<0>(place) == container && std::get<1>(place) == field)
        slots[std::get<2>(place)] = slot;
    return slots;
  }

  std::map<std::tuple<std::string, api::Field, std::string>, Slot> slots_;
  std::vector<std::string> hooks_;
  std::vector<std::string> updated_;
  std::map<std::string, bool> may_fail_;
};

// A container with an entry "k" in each keyed field.
api::Container Pristine() {
  return Make<api::Container>(R"(
    id: "ctr" annotations { key: "k" value: "1000" } args: "1000" env: ["k=1000", "HOME=/"]
    mounts { destination: "k" source: "1000" } rlimits { type: "k" hard: 1000 }
    CDI_devices { name: "k" }
    linux { devices { path: "k" minor: 1000 } namespaces { type: "k" path: "1000" }
            sysctl { key: "k" value: "1000" } rdt { clos_id { value: "1000" } }
            resources { cpu { shares { value: 1000 } quota { value: 7 } mems: "1000" }
                        hugepage_limits { page_size: "k" limit: 1000 }
                        unified { key: "k" value: "1000" } } })");
}

// Without fields that other tests cover: hooks, and those that accompany a clos id.
std::vector<OwnedField> OfForms(std::vector<OwnedField> owned) {
  std::erase_if(owned, [](const OwnedField& field) {
    return std::ranges::find(Forms(), field.field, &FieldForm::field) == Forms().end();
  });
  return owned;
}

void ExpectSame(const AdjustmentMerge& merge, const Model& model) {
  const api::Container pristine = Pristine();
  for (const FieldForm& form : Forms()) {
    SCOPED_TRACE(FieldName(form.field));
    EXPECT_EQ(form.read(merge.adjustment()), model.Result(std::string(kContainer), form));
    EXPECT_EQ(form.shown(merge.container()), model.Shown(form, form.shown(pristine)));
  }
  EXPECT_EQ(merge.container().linux().resources().cpu().quota().value(), 7);
  EXPECT_EQ(OfForms(merge.owned(kContainer)), model.Owned(std::string(kContainer)));

  std::vector<std::string> hooks;
  for (const api::Hook& hook : merge.adjustment().hooks().poststop())
    hooks.push_back(hook.path());
  EXPECT_EQ(hooks, model.hooks());

  std::vector<std::string> updated;
  for (const api::ContainerUpdate& update : merge.updates()) {
    updated.push_back(update.container_id());
    EXPECT_EQ(update.ignore_failure(), model.MayFail(update.container_id()));
    for (const ResourceForm& form : ResourceForms()) {
      EXPECT_EQ(form.read(update.linux().resources()),
                model.Result(update.container_id(), FormOf(form.field)));
    }
    EXPECT_EQ(merge.owned(update.container_id()), model.Owned(update.container_id()));
  }
  EXPECT_EQ(updated, model.updated());
}

TEST(AdjustmentMergePropertyTest, MergesAsTheModelDoes) {
  const uint64_t seed = resmgr::test::SeedOr(1);
  SCOPED_TRACE(resmgr::test::Repeat(seed));
  Draw draw(seed);
  int refused = 0;
  int taken = 0;
  for (int round = 0; round < 300 && !testing::Test::HasFailure(); ++round) {
    AdjustmentMerge merge(Given(Pristine()));
    Model model;
    for (const char* const plugin : {"10-a", "20-b", "30-c"}) {
      const PluginReply reply = draw.Reply(plugin);
      SCOPED_TRACE(ToMessage(reply).ShortDebugString());
      const bool takes = model.Add(reply);
      EXPECT_EQ(merge.Add(plugin, ToMessage(reply)).ok(), takes);
      ExpectSame(merge, model);
      ++(takes ? taken : refused);
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(taken, 300);
}

// Plugins whose changes are disjoint.
TEST(AdjustmentMergePropertyTest, WithoutConflictsOrderDoesNotMatter) {
  const uint64_t seed = resmgr::test::SeedOr(2);
  SCOPED_TRACE(resmgr::test::Repeat(seed));
  Draw draw(seed);
  for (int round = 0; round < 50 && !testing::Test::HasFailure(); ++round) {
    std::vector<PluginReply> replies;
    for (const std::string plugin : {"10-a", "20-b", "30-c"}) {
      PluginReply reply = draw.Reply(plugin);
      reply.hook = false;
      reply.updates.clear();
      std::erase_if(reply.edits, [&](const Edit& edit) {
        return std::ranges::any_of(replies, [&](const PluginReply& other) {
          return std::ranges::any_of(other.edits, [&](const Edit& taken) {
            return taken.field == edit.field && taken.key == edit.key;
          });
        });
      });
      replies.push_back(std::move(reply));
    }
    Model model;
    for (const PluginReply& reply : replies)
      EXPECT_TRUE(model.Add(reply));
    std::ranges::shuffle(replies, draw.random());
    AdjustmentMerge merge(Given(Pristine()));
    for (const PluginReply& reply : replies)
      EXPECT_THAT(merge.Add(reply.plugin, ToMessage(reply)), resmgr::test::IsOk());
    ExpectSame(merge, model);
  }
}

}  // namespace
}  // namespace resmgr::nri
