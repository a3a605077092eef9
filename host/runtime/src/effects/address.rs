//! What kind of place an IP address is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A kind of address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Anywhere on the internet.
    Public,
    /// This machine.
    Loopback,
    /// A private network.
    Private,
    /// For the link alone: also where clouds serve credentials.
    LinkLocal,
    /// No single machine, or none that can be reached.
    Special,
}

impl Kind {
    /// For messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Special => "reserved",
        }
    }
}

/// What kind of address this is. One that wraps another is of the other's kind.
pub(super) fn kind_of(address: IpAddr) -> Kind {
    match address {
        IpAddr::V4(address) => kind_of_v4(address),
        IpAddr::V6(address) => kind_of_v6(address),
    }
}

fn kind_of_v4(address: Ipv4Addr) -> Kind {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (127, ..) => Kind::Loopback,
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => Kind::Private,
        (169, 254, _) => Kind::LinkLocal,
        // This network, protocol assignments, documentation, 6to4 relays, benchmarks, multicast,
        // reserved and broadcast.
        (0 | 224..=255, ..)
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (198, 18 | 19, _)
        | (198, 51, 100)
        | (203, 0, 113) => Kind::Special,
        _ => Kind::Public,
    }
}

fn kind_of_v6(address: Ipv6Addr) -> Kind {
    if address == Ipv6Addr::LOCALHOST {
        return Kind::Loopback;
    }
    let [first, second, third, .., seventh, eighth] = address.segments();
    let wrapped = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        kind_of_v4(Ipv4Addr::new(a, b, c, d))
    };
    if address.to_ipv4_mapped().is_some() || address.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0] {
        return wrapped(seventh, eighth);
    }
    match first {
        0x2002 => wrapped(second, third),
        0xfc00..=0xfdff => Kind::Private,
        0xfe80..=0xfebf => Kind::LinkLocal,
        // Of 2001::/16: Teredo, benchmarks, ORCHID and documentation.
        0x2001 if second < 0x200 || second == 0xdb8 => Kind::Special,
        0x3fff if second < 0x1000 => Kind::Special,
        0x2000..=0x3fff => Kind::Public,
        _ => Kind::Special,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_kinds() {
        let kinds: [(Kind, &[&str]); 5] = [
            (
                Kind::Public,
                &["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1", "64:ff9b::1.1.1.1"],
            ),
            (
                Kind::Loopback,
                &["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"],
            ),
            (
                Kind::Private,
                &[
                    "10.0.0.1",
                    "172.16.0.1",
                    "192.168.1.1",
                    "100.64.0.1",
                    "fc00::1",
                    "fd12::1",
                    "::ffff:10.0.0.1",
                    "2002:a00:1::",
                ],
            ),
            (Kind::LinkLocal, &["169.254.169.254", "fe80::1", "::ffff:169.254.169.254"]),
            (
                Kind::Special,
                &[
                    "0.0.0.0",
                    "255.255.255.255",
                    "224.0.0.1",
                    "192.0.2.1",
                    "::",
                    "ff02::1",
                    "2001:db8::1",
                    "2001::1",
                    "::7f00:1",
                    "fec0::1",
                    "198.18.0.1",
                ],
            ),
        ];
        for (kind, addresses) in kinds {
            for address in addresses {
                assert_eq!(kind_of(address.parse().unwrap()), kind, "{address}");
            }
        }
    }
}
