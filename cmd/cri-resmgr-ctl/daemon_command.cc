// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/daemon_command.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "cmd/cri-resmgr-ctl/terminal_text.h"
#include "cmd/cri-resmgr-ctl/watch.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/dump/yaml_text.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {
namespace {

// A number that a change sets; null stands for the value that the container requests.
std::string NumberText(const Reply& number) {
  return number.is_null() ? "as asked" : OrderedJsonText(number);
}

std::string QuotaText(const Reply& place) {
  const Reply& quota = place.at("quota");
  if (quota.is_number_integer() && quota.get<int64_t>() < 0) return "none";
  const Reply& period = place.value("period", Reply());
  if (quota.is_null() || period.is_null()) return NumberText(quota);
  return fmt::format("{} of {} us", OrderedJsonText(quota), OrderedJsonText(period));
}

std::string PlaceText(const Reply& place) {
  std::string text = fmt::format("cpus {} mems {}", Cell(place, "cpus"), Cell(place, "mems"));
  // A place has these members only if the change sets them.
  if (place.contains("shares")) text += " shares " + NumberText(place.at("shares"));
  if (place.contains("quota")) text += " quota " + QuotaText(place);
  return text;
}

// Why the daemon knows no containers; "" if it knows some, or there are none to know.
std::string WhyNoneIsKnown(const std::string& socket) {
  const Reply status = AskForReply(socket, "Status", "{}").value_or(Reply());
  const std::string why = status.is_object() ? status.value("noneKnown", "") : "";
  return Printable(why, why.size());
}

// Time limit of the call that finds out whether a daemon runs.
constexpr std::chrono::milliseconds kProbeTimeout{5'000};

UnaryAnswer Ask(const std::string& socket, std::string_view method, std::string_view request,
                std::chrono::milliseconds timeout) {
  return AskUnary(socket, fmt::format("/cri_resmgr.v1.Admin/{}", method), request, timeout);
}

// Whether the error may come from a program other than the daemon: a gRPC server without this
// service, a proxy whose backend is away, or a server that does not speak HTTP/2 and breaks the
// connection.
bool MayBeOfAnother(StatusCode code) {
  return code == StatusCode::kUnimplemented || code == StatusCode::kUnavailable ||
         code == StatusCode::kUnknown || code == StatusCode::kInternal;
}

std::string_view NextStep(const std::string& socket) {
  if (::access(socket.c_str(), R_OK | W_OK) != 0 && errno == EACCES) {
    return "only root may use it: try again with sudo";
  }
  return "see whether it runs: systemctl status 'cri-resmgr*', journalctl -u 'cri-resmgr*'";
}

}  // namespace

void DaemonCommand::Declare(CommandLine& line) {
  if (IsList()) {
    line.Choice("o", {"table", "wide", "json", "yaml"},
                "The output format. A table is cut to the width of the terminal, wide is not.",
                &output_);
  } else {
    line.Choice("o", {"table", "json", "yaml"}, "The output format.", &output_);
  }
  if (Watchable()) {
    line.Flag("w", "Watch: show the output again whenever it changes, until Ctrl-C.", &watch_);
  }
  DeclareMore(line);
}

Status DaemonCommand::Run(std::ostream& out) {
  RESMGR_ASSIGN_OR_RETURN(const Reply request, Request());
  const std::string text = OrderedJsonText(request);
  SetStyle(out);
  if (watch_) {
    const auto look = [&]() -> StatusOr<std::string> {
      RESMGR_ASSIGN_OR_RETURN(Shown shown, Look(text));
      return std::move(shown.text);
    };
    return Watch(look, out, notes());
  }
  RESMGR_ASSIGN_OR_RETURN(const Shown shown, Look(text));
  out << shown.text;
  return shown.outcome;
}

void DaemonCommand::SetStyle(const std::ostream& out) {
  if (IsList()) style_ = StyleFor(out, wide());
}

StatusOr<Reply> DaemonCommand::Ask(std::string_view request) const {
  RESMGR_ASSIGN_OR_RETURN(Reply reply, AskForReply(socket(), Method(), request));
  try {
    return Arranged(std::move(reply));
  } catch (const Reply::exception& error) {
    return Internal("the daemon's answer is not as expected: {}", error.what());
  }
}

StatusOr<DaemonCommand::Shown> DaemonCommand::Look(std::string_view request) const {
  RESMGR_ASSIGN_OR_RETURN(const Reply reply, Ask(request));
  try {
    const Status outcome = Outcome(reply);
    return Shown{.text = FormWithReason(reply), .outcome = outcome};
  } catch (const Reply::exception& error) {
    return Internal("the daemon's answer is not as expected: {}", error.what());
  }
}

std::string DaemonCommand::FormWithReason(const Reply& reply) const {
  std::string text = Form(reply);
  if (!HasNoContainers(reply)) return text;
  const std::string why = WhyNoneIsKnown(socket());
  if (why.empty()) return text;
  const std::string line = fmt::format("No containers are known: {}.\n", why);
  if (as_table()) return reply.empty() ? line : text + line;
  // Programs read the answer, so the reason is printed as a note and not as a part of the answer.
  if (!watch_) notes() << "cri-resmgr-ctl: " << line;
  return text;
}

std::string DaemonCommand::Form(const Reply& reply) const {
  if (output_ == "json") return PrintableJson(OrderedJsonText(reply)) + '\n';
  if (output_ == "yaml") return dump::ToYaml(reply);
  return TextOf(reply);
}

Reply DaemonCommand::Readable(const Reply& value, std::string_view member) const {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return HasLines(member) ? PrintableLines(text) : Printable(text, text.size());
  }
  if (!value.is_structured()) return value;
  Reply readable = value.is_array() ? Reply::array() : Reply::object();
  if (value.is_array()) {
    for (const Reply& each : value)
      readable.push_back(Readable(each, member));
    return readable;
  }
  for (const auto& [key, each] : value.items())
    readable[Printable(key, key.size())] = Readable(each, key);
  return readable;
}

bool NoneHasContainers(const Reply& list) {
  return std::ranges::all_of(list, [](const Reply& each) {
    return !each.is_object() || each.value("containers", Reply()).empty();
  });
}

std::string Cell(const Reply& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "-";
  std::string text = found->is_string() ? found->get<std::string>() : OrderedJsonText(*found);
  return text.empty() ? "-" : text;
}

std::string ListCell(const Reply& object, const char* key) {
  std::string text;
  for (const Reply& each : object.value(key, Reply::array()))
    text += (text.empty() ? "" : ", ") + each.get<std::string>();
  return text.empty() ? "-" : text;
}

std::string MovesTable(const Reply& moves) {
  if (moves.empty()) return "no container moves\n";
  std::vector<TableRow> rows = {{"CONTAINER", "FROM", "TO", "REASON"}};
  for (const Reply& move : moves) {
    rows.push_back({Cell(move, "container"), PlaceText(move.at("from")), PlaceText(move.at("to")),
                    Cell(move.at("to"), "reason")});
  }
  return FormatTable(rows);
}

void ContainerFilter::Declare(CommandLine& line) {
  line.Flag("n", "NAMESPACE", "Only containers of this namespace.", &namespace_);
  line.Flag("l", "SELECTOR",
            "Only containers of pods with such labels, as for kubectl: app=web,tier!=db, "
            "'app in (web,api)', app, '!app'.",
            &selector_);
}

void ContainerFilter::AddTo(Reply& request) const {
  if (!namespace_.empty()) request["namespace"] = namespace_;
  if (!selector_.empty()) request["selector"] = selector_;
}

StatusOr<std::string> AskDaemon(const std::string& socket, std::string_view method,
                                std::string_view request, std::chrono::milliseconds patience) {
  RESMGR_RETURN_IF_ERROR(Annotate(CheckUnixPath(socket), "-socket"));
  UnaryAnswer answer = Ask(socket, method, request, patience);
  if (!answer.connected.ok()) {
    return Unavailable("cri-resmgr is not reached: {}; {}", Message(answer.connected),
                       NextStep(socket));
  }
  if (answer.reply.ok() || !MayBeOfAnother(answer.reply.status().code())) return answer.reply;
  const UnaryAnswer probe = Ask(socket, "Status", "{}", std::min(patience, kProbeTimeout));
  if (probe.connected.ok() && !probe.reply.ok()) {
    return Unavailable("{} is not a cri-resmgr admin socket, or the daemon has just ended", socket);
  }
  if (answer.reply.status().code() == StatusCode::kUnimplemented) {
    return Unimplemented("the daemon at {} is of another version: it cannot do this", socket);
  }
  return answer.reply;
}

StatusOr<Reply> AskForReply(const std::string& socket, std::string_view method,
                            std::string_view request, std::chrono::milliseconds patience) {
  RESMGR_ASSIGN_OR_RETURN(const std::string text, AskDaemon(socket, method, request, patience));
  Reply reply = Reply::parse(text, nullptr, false);
  if (reply.is_discarded()) return Internal("the daemon's answer is not JSON");
  return reply;
}

}  // namespace resmgr
