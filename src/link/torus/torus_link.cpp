// SPDX-License-Identifier: Apache-2.0
#include "link/torus/torus_link.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <utility>

#include "nanet/config/setting.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::link {
namespace {

constexpr std::uint32_t kTorusPauseNs = 50'000;
constexpr std::uint32_t kTorusPausesToAsk = 400;
constexpr std::uint64_t kTorusProbeNs = 20'000'000;  // between two questions to a receiver that stands still
constexpr std::uint32_t kTorusPayloadMax = 65'507;   // as of a UDP payload: what comes after knows no longer one

void pause_for(std::uint64_t ns) {
  const timespec pause{.tv_sec = 0, .tv_nsec = static_cast<long>(ns)};
  ::nanosleep(&pause, nullptr);
}

const TorusConfig& checked_torus(const TorusConfig& config) {
  const auto refuse = [&](const std::string& problem, const std::string& why, const std::string& suggestion) {
    throw SetupError("link " + config.name + " " + problem, why, suggestion);
  };
  if (!config.listen) refuse("has no node", "it receives into the memory of one", "give it an endpoint torus://NODE");
  config::refuse_broken(config.check());
  if (config.packet_bytes_max == 0 || config.packet_bytes_max > kTorusPayloadMax)
    refuse("cannot have packet_bytes_max = " + std::to_string(config.packet_bytes_max), "a payload has 1..65507 bytes",
           "set it to the longest that is sent");
  return config;
}

std::optional<config::Problem> slots_of_torus(std::uint32_t slot_count) {
  return config::power_of_two("slot_count", slot_count, "payloads are numbered modulo 2^16");
}

}  // namespace

std::optional<config::Problem> TorusFrom::check() const { return slots_of_torus(slot_count); }

std::optional<config::Problem> TorusConfig::check() const {
  if (file.empty()) {
    return config::Problem{"torus", "link '" + name + "' has no torus", "nothing says which one its node is of",
                           "add torus: {file: PATH}, as given to nanet torus serve"};
  }
  if (auto broken = slots_of_torus(slot_count)) return broken;
  std::vector<std::uint32_t> sorted = senders;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end())
    return config::Problem{"senders", "a sender is named twice", "each has slots of its own", "name each once"};
  if (listen && std::ranges::binary_search(sorted, listen->address.ipv4()))
    return config::Problem{"senders", "node " + std::to_string(listen->address.ipv4()) + " is a sender to itself",
                           "link '" + name + "' is at that node, which does not send to its own memory", "name other nodes"};
  return std::nullopt;
}

TorusConfig torus_sender(const TorusFrom& from, const std::string& name, const std::vector<Endpoint>& destinations,
                         std::uint32_t packet_bytes_max) {
  TorusConfig config;
  config.name = name;
  config.listen = Endpoint{"torus", from.node, 0};
  config.destinations = destinations;
  config.receives = false;
  config.packet_bytes_max = packet_bytes_max;
  config.file = from.file;
  config.slot_count = from.slot_count;
  config.wait_ms = from.wait_ms;
  return config;
}

std::unique_ptr<Link> open_torus(const TorusConfig& config) { return std::make_unique<TorusLink>(config); }

TorusLink::TorusLink(const TorusConfig& config)
    : config_(checked_torus(config)),
      file_([&] {
        TorusFile file = TorusFile::open(config.file, config.name);
        file.claim(config.listen->address.ipv4(), config.name);
        return file;
      }()),
      host_(file_.host(config.listen->address.ipv4())),
      memory_(file_.memory(config.listen->address.ipv4())),
      slot_bytes_((config.packet_bytes_max + 15u) & ~15u) {
  Completion left;
  while (host_.completions.pop(left)) {  // of the host before this one
  }
  open_slots();
  open_windows();
}

// What is under way to this node from now on is refused by its key.
TorusLink::~TorusLink() {
  for (const TorusArrivals& one : arrivals_) host_.inboxes[one.node()].generation.store(0, std::memory_order_release);
  for (std::uint8_t key = 0; key < arrivals_.size(); ++key) host_.keys.push({.index = key});
}

std::uint32_t TorusLink::reserve(std::uint32_t slots) {
  const std::uint64_t bytes = std::uint64_t{slots} * slot_bytes_;
  if (used_bytes_ + bytes > memory_.size())
    throw SetupError("link " + config_.name + " does not fit into the memory of its node",
                     "it has " + std::to_string(memory_.size()) + " B, and " + std::to_string(config_.slot_count) + " slots of " +
                         std::to_string(slot_bytes_) + " B for each sender and destination need more",
                     "name fewer torus.senders, or lower torus.slot_count or packet_bytes_max");
  const std::uint32_t at = used_bytes_;
  used_bytes_ += static_cast<std::uint32_t>(bytes);
  return at;
}

void TorusLink::open_slots() {
  const std::uint32_t own = config_.listen->address.ipv4();
  std::vector<std::uint32_t> senders = config_.senders;
  if (senders.empty() && config_.receives) {
    for (std::uint32_t node = 0; node < file_.head().nodes(); ++node) {
      if (node != own) senders.push_back(node);
    }
  }
  if (senders.size() > kTorusKeys)
    throw SetupError("link " + config_.name + " cannot receive from " + std::to_string(senders.size()) + " nodes",
                     "a node gives out " + std::to_string(kTorusKeys) + " keys", "name those that send in torus.senders");
  for (TorusInbox& inbox : host_.inboxes) inbox.generation.store(0, std::memory_order_release);
  for (std::uint8_t key = 0; key < kTorusKeys; ++key) {
    if (key < senders.size()) {
      open_inbox(senders[key], key);
    } else {
      host_.keys.push({.index = key});
    }
  }
}

void TorusLink::open_inbox(std::uint32_t sender, std::uint8_t key) {
  if (sender >= file_.head().nodes())
    throw SetupError("link " + config_.name + " cannot receive from node " + std::to_string(sender),
                     "the torus is " + file_.head().shape_text(),
                     "name nodes of 0 to " + std::to_string(file_.head().nodes() - 1) + " in torus.senders");
  const std::uint32_t nonce = std::random_device{}(), at = reserve(config_.slot_count);
  arrivals_.emplace_back(sender, at, config_.slot_count, slot_bytes_);
  if (!host_.keys.push({.index = key, .is_valid = true, .nonce = nonce, .offset = at, .bytes = config_.slot_count * slot_bytes_})) {
    throw SetupError("link " + config_.name + " cannot share memory of its node", "the simulation of the torus stands still",
                     "end it, and start nanet torus serve again");
  }
  TorusInbox& inbox = host_.inboxes[sender];
  inbox.region.store(key, std::memory_order_relaxed);
  inbox.nonce.store(nonce, std::memory_order_relaxed);
  inbox.slot_count.store(config_.slot_count, std::memory_order_relaxed);
  inbox.slot_bytes.store(slot_bytes_, std::memory_order_relaxed);
  inbox.generation.store(inbox.opened.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_release);
}

void TorusLink::open_windows() {
  for (const Endpoint& to : config_.destinations) {
    const std::uint32_t node = to.address.ipv4();
    if (to.scheme != "torus" || node >= file_.head().nodes())
      throw SetupError("link " + config_.name + " cannot send to " + to_string(to), "the torus is " + file_.head().shape_text(),
                       "give torus://NODE with a node of 0 to " + std::to_string(file_.head().nodes() - 1));
    if (node == config_.listen->address.ipv4())
      throw SetupError("link " + config_.name + " cannot send to " + to_string(to),
                       "it is at that node, which has no slots for itself", "name another node");
    const bool is_twice = std::ranges::any_of(windows_, [&](const TorusWindow& window) { return window.node() == node; });
    if (is_twice)
      throw SetupError("link " + config_.name + " cannot send twice to " + to_string(to),
                       "a node has slots for each other one once", "name each destination once");
    windows_.emplace_back(node, reserve(config_.slot_count), config_.slot_count, slot_bytes_);
  }
}

TorusArrivals* TorusLink::arrivals_of(std::uint32_t node) {
  const auto found = std::ranges::find_if(arrivals_, [&](const TorusArrivals& one) { return one.node() == node; });
  return found != arrivals_.end() ? &*found : nullptr;
}

void TorusLink::pump() {
  Completion one;
  while (host_.completions.pop(one)) take(one);
  give_credits();
}

void TorusLink::take(const Completion& one) {
  const std::uint32_t from = file_.head().node_at(static_cast<std::uint16_t>(one.reserved1));
  const auto process = static_cast<TorusNumber>(one.reserved1 >> 32), value = static_cast<TorusNumber>(one.reserved1 >> 48);
  if (one.kind != CompletionKind::message) {
    ++failed_;  // what it lacks is found to be lost with the next one
  } else if (one.reserved0 == static_cast<std::uint8_t>(TorusJobKind::event)) {
    take_news(from, process, value);
  } else {
    TorusArrivals* const arrivals = arrivals_of(from);
    if (arrivals == nullptr || !arrivals->land(process, one.bytes)) ++stray_;
  }
}

void TorusLink::take_news(std::uint32_t from, TorusNumber process, TorusNumber value) {
  const auto news = static_cast<TorusNews>(process / kTorusGenerations);
  const std::uint32_t generation = process % kTorusGenerations;
  bool is_of_use = false;
  if (news == TorusNews::credit) {
    for (TorusWindow& window : windows_) {
      if (window.node() == from && window.generation() % kTorusGenerations == generation) is_of_use = window.take_credit(value);
    }
  } else if (TorusArrivals* const arrivals = arrivals_of(from)) {
    is_of_use = host_.inboxes[from].generation.load(std::memory_order_relaxed) % kTorusGenerations == generation;
    if (is_of_use && news == TorusNews::hello) arrivals->begin(value);
    if (is_of_use && news == TorusNews::ask) is_of_use = arrivals->ask(value);
  }
  if (!is_of_use) ++stale_;
}

bool TorusLink::tell(TorusNews news, std::uint32_t to, std::uint32_t generation, TorusNumber value) {
  const std::uint32_t process = static_cast<std::uint32_t>(news) * kTorusGenerations + generation % kTorusGenerations;
  return host_.jobs.push({.kind = TorusJobKind::event, .process = static_cast<TorusNumber>(process), .to = to, .offset = value});
}

void TorusLink::give_credits() {
  for (TorusArrivals& one : arrivals_) {
    one.greet();
    const std::optional<TorusNumber> credit = one.credit();
    const std::uint32_t generation = host_.inboxes[one.node()].generation.load(std::memory_order_relaxed);
    if (!credit || !tell(TorusNews::credit, one.node(), generation, *credit)) continue;
    one.told(*credit);
    ++credits_;
  }
}

RxBatch TorusLink::receive(std::span<std::byte> room, std::span<RxPacket> packets, std::uint64_t /*now_ns*/) {
  const std::lock_guard lock(mutex_);
  ++own_.rx_calls;
  pump();
  RxRoom out(room, packets);
  for (std::size_t empty = 0; empty < arrivals_.size() && out.packets_left() > 0;) {  // one packet of each sender in turn
    TorusArrivals& arrivals = arrivals_[next_sender_];
    const bool took = take_oldest(arrivals, out);
    if (!took && arrivals.oldest() != nullptr) break;  // the room is full
    empty = took ? 0 : empty + 1;
    next_sender_ = next_sender_ + 1 == arrivals_.size() ? 0 : next_sender_ + 1;
  }
  if (out.packet_count == 0) return out.batch();
  give_credits();
  ++own_.rx_batches;
  own_.rx_packets += out.packet_count;
  own_.rx_bytes += out.payload_bytes;
  return out.batch();
}

// False: there is none, or it waits for a larger room.
bool TorusLink::take_oldest(TorusArrivals& arrivals, RxRoom& out) {
  const TorusArrival* const one = arrivals.oldest();
  if (one == nullptr) return false;
  const auto flags = static_cast<std::uint16_t>(one->is_after_loss ? RxPacket::after_drop : 0);
  const auto payload = std::span<const std::byte>(memory_).subspan(arrivals.at(one->number), one->bytes);
  if (!out.add(payload, static_cast<std::uint16_t>(arrivals.node() + 1), flags)) return false;
  arrivals.pop();
  return true;
}

void TorusLink::send(std::span<const TxPacket> packets, std::uint64_t now_ns) {
  std::unique_lock lock(mutex_);
  ++own_.tx_calls;
  pump();
  const std::uint64_t pauses_most = std::uint64_t{config_.wait_ms} * 1'000'000 / kTorusPauseNs;
  std::uint64_t pauses = 0;
  for (const TxPacket& packet : packets) {
    TorusWindow& window = windows_[packet.destination];
    Fate fate = put(window, packet);
    while (fate == Fate::no_credit && !window.is_stalled && pauses < pauses_most) {
      if (++pauses % kTorusPausesToAsk == 0) probe(window);
      lock.unlock();
      pause_for(kTorusPauseNs);
      lock.lock();
      pump();
      fate = put(window, packet);
    }
    if (fate == Fate::no_credit) {
      window.is_stalled = true;
      if (now_ns - window.probed_ns >= kTorusProbeNs) {
        window.probed_ns = now_ns;
        probe(window);
      }
    }
    count(fate, packet.bytes);
    if (fate != Fate::gone) tell_dropped({&packet, 1});
  }
}

TorusLink::Fate TorusLink::put(TorusWindow& window, const TxPacket& packet) {
  const std::uint32_t before = window.generation();
  const TorusInbox& inbox = file_.host(window.node()).inboxes[config_.listen->address.ipv4()];
  if (!window.look(inbox)) return Fate::no_receiver;
  if (window.generation() != before) tell(TorusNews::hello, window.node(), window.generation(), window.next());
  if (packet.bytes == 0 || packet.bytes > window.bytes_max()) return Fate::unsendable;
  if (!window.has_room()) return Fate::no_credit;
  std::memcpy(&memory_[window.local()], packet.data, packet.bytes);
  if (!host_.jobs.push(window.put(packet.bytes))) return Fate::no_credit;
  window.sent();
  return Fate::gone;
}

void TorusLink::probe(const TorusWindow& window) {
  ++asks_;
  tell(window.is_known() ? TorusNews::ask : TorusNews::hello, window.node(), window.generation(), window.next());
}

void TorusLink::count(Fate fate, std::uint64_t bytes) {
  ++fates_[static_cast<std::size_t>(fate)];
  if (fate != Fate::gone) {
    ++own_.tx_dropped;
    return;
  }
  ++own_.tx_packets;
  own_.tx_bytes += bytes;
}

void TorusLink::wait(std::uint64_t timeout_ns) { pause_for(std::min<std::uint64_t>(timeout_ns, kTorusPauseNs)); }

LinkStats TorusLink::stats() const {
  const std::lock_guard lock(mutex_);
  LinkStats stats = own_;
  stats.rx_copied_bytes = stats.rx_bytes;
  stats.rx_malformed = stray_;
  for (const TorusArrivals& one : arrivals_) stats.rx_kernel_dropped += one.lost();
  return stats;
}

// Payloads that have landed and were not received: what waits while an engine runs is lost when it is stopped.
std::uint64_t TorusLink::held() const {
  std::uint64_t held = host_.completions.count_if([](const Completion& one) {
    return one.kind == CompletionKind::message && one.reserved0 == static_cast<std::uint8_t>(TorusJobKind::put);
  });
  for (const TorusArrivals& one : arrivals_) held += one.held();
  return held;
}

std::uint64_t TorusLink::unacknowledged(bool has_ended) const {
  const std::uint32_t own = config_.listen->address.ipv4();
  std::uint64_t found = 0;
  for (const TorusWindow& one : windows_) {
    const bool is_gone = has_ended || one.has_lost(file_.host(one.node()).inboxes[own]);
    found += one.given_up() + (is_gone ? one.under_way() : 0);
  }
  return found;
}

// What the node's registers say, a group for its messages, each link and each port of its router.
void TorusLink::add_registers(std::vector<NicCounts>& all) const {
  for_each_torus_group([&](const TorusCounter& first, std::size_t begin, std::size_t end) {
    NicCounts group{std::string(first.group), {}, {}};
    if (first.port >= 0) group.port = static_cast<std::uint32_t>(first.port);
    for (std::size_t k = begin; k < end; ++k)
      group.counts.emplace_back(kTorusCounterTable[k].name, host_.registers[k].load(std::memory_order_relaxed));
    all.push_back(std::move(group));
  });
}

std::vector<NicCounts> TorusLink::nic_counts() const {
  NicCounts node{"node", {}, {}};
  const TorusHead& head = file_.head();
  for (std::size_t k = 0; k < std::min(head.counts, kTorusCountsMax); ++k) {
    const auto& name = head.names[k];
    node.counts.emplace_back(std::string(name.data(), ::strnlen(name.data(), name.size())),
                             host_.counts[k].load(std::memory_order_relaxed));
  }
  const bool has_ended = !file_.is_served();  // asks the kernel: not while the links' threads wait
  const std::lock_guard lock(mutex_);
  std::uint64_t lost = 0;
  for (const TorusArrivals& one : arrivals_) lost += one.lost();
  std::vector<NicCounts> all{std::move(node),
                             {"slots",
                              {},
                              {{"lost", lost},
                               {"stray", stray_},
                               {"failed", failed_},
                               {"stale", stale_},
                               {"no_receiver", counted(Fate::no_receiver)},
                               {"unsendable", counted(Fate::unsendable)},
                               {"no_credit", counted(Fate::no_credit)},
                               {"unacknowledged", unacknowledged(has_ended)},
                               {"held", held()},
                               {"ended", has_ended ? 1 : 0},
                               {"credits", credits_},
                               {"asks", asks_}}}};
  add_registers(all);
  return all;
}

std::vector<std::string> TorusLink::notes() const {
  if (file_.is_served()) return {};
  return {"link " + config_.name + ": nothing goes over its torus (the simulation of " + config_.file +
          " has ended) start nanet torus serve, and then this again"};
}

// One that ended does not come back: another has another file, and other keys. What has landed is still here, and is received.
bool TorusLink::finished() const { return !file_.is_served(); }

std::string TorusLink::path() const {
  return "node " + std::to_string(config_.listen->address.ipv4()) + " of a simulated torus " + file_.head().shape_text() + ", " +
         std::to_string(config_.slot_count) + " slots each for " + std::to_string(arrivals_.size()) +
         (arrivals_.size() == 1 ? " sender" : " senders");
}

}  // namespace nanet::link
