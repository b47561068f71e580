//! Reading a payload: a stream with one JSON value, of which a few fields are
//! wanted.
//!
//! The stream is read through one fixed buffer and only to the end of the
//! value. Wanted keys are read strictly: their text is unescaped, checked and
//! cut at a limit, and a wanted key that stands twice refuses the payload, for
//! two readers could then see two different events. All other values are only
//! passed over by counting brackets outside of strings, so a tool result of
//! megabytes costs little more than reading it. Nothing is allocated.

use memchr::memchr;

use super::want::Want;

/// Most bytes of a payload.
pub const MAX_PAYLOAD: u64 = 64 << 20;
/// Bytes that are read at once.
pub const WINDOW: usize = 40 << 10;
/// Bytes kept of all texts. There is room for the longest text of every field,
/// so that no payload can crowd out its own session id.
const ARENA: usize = {
    let (mut bytes, mut at) = (0, 0);
    while at < Want::ALL.len() {
        bytes += Want::ALL[at].0.max();
        at += 1;
    }
    bytes
};
/// Levels that are looked into for wanted keys.
const MAX_LEVELS: usize = 4;

/// The value of a wanted field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Absent,
    /// Text in the arena; `cut` says that there was more.
    Text {
        start: u32,
        end: u32,
        cut: bool,
    },
    /// A whole number.
    Int(u64),
    /// An array with so many elements.
    Count(u32),
    /// `null` or `false`.
    Nothing,
    /// `true`
    True,
    /// Text that is not UTF-8 or has a lone surrogate or a NUL, another number,
    /// an object.
    Odd,
}

/// The wanted fields of one payload.
pub struct Payload<'b> {
    values: &'b [Value; Want::ALL.len()],
    arena: &'b [u8],
}

/// Why a payload gives no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Nothing but white space came.
    Empty,
    /// It ended, or the reader failed, before the value did.
    Short,
    /// It is not one JSON object.
    Malformed,
    /// A wanted key stands twice.
    Duplicate,
    /// More than [`MAX_PAYLOAD`] bytes.
    TooLong,
}

impl Refused {
    /// The code for the fault log and `--strict`.
    pub fn code(self) -> &'static str {
        match self {
            Refused::Empty => "payload-empty",
            Refused::Short => "payload-short",
            Refused::Malformed => "payload-malformed",
            Refused::Duplicate => "payload-duplicate-key",
            Refused::TooLong => "payload-too-long",
        }
    }
}

impl Payload<'static> {
    /// A payload without any field, for events that variables tell.
    pub const fn none() -> Payload<'static> {
        Payload { values: &[Value::Absent; Want::ALL.len()], arena: b"" }
    }
}

impl Payload<'_> {
    fn value(&self, want: Want) -> Value {
        self.values.get(want as usize).copied().unwrap_or(Value::Absent)
    }

    /// Whether the field is there with a value other than null and false.
    pub fn has(&self, want: Want) -> bool {
        !matches!(self.value(want), Value::Absent | Value::Nothing)
    }

    /// Whether the field is set: true, or text that is not empty.
    pub fn is_set(&self, want: Want) -> bool {
        self.value(want) == Value::True || !self.text_of(want).is_empty()
    }

    /// Whether the field holds this text, or the number that it stands for.
    pub fn says(&self, want: Want, what: &str) -> bool {
        match self.value(want) {
            Value::Int(n) => what.parse() == Ok(n),
            _ => self.text_of(want) == what,
        }
    }

    /// The first of the fields that is set, for a mark: its text, or "true".
    pub fn mark(&self, wants: &[Want]) -> &str {
        match wants.iter().find(|w| self.is_set(**w)) {
            Some(want) if self.value(*want) == Value::True => "true",
            Some(want) => self.text_of(*want),
            None => "",
        }
    }

    /// The first of the fields that holds text; empty where none does. A cut
    /// text is the part that fits.
    pub fn text(&self, wants: &[Want]) -> &str {
        wants.iter().map(|w| self.text_of(*w)).find(|t| !t.is_empty()).unwrap_or("")
    }

    fn text_of(&self, want: Want) -> &str {
        let Value::Text { start, end, .. } = self.value(want) else { return "" };
        let bytes = self.arena.get(start as usize..end as usize).unwrap_or(b"");
        core::str::from_utf8(bytes).unwrap_or("")
    }

    /// The first of the fields that is there and not empty, for an id: text of
    /// at most `max` bytes, whole, without NUL.
    pub fn id(&self, wants: &[Want], max: usize) -> Option<&str> {
        let whole = |want: &&Want| match self.value(**want) {
            Value::Text { cut, .. } => !cut,
            _ => false,
        };
        let empty = |want: Want| match self.value(want) {
            Value::Text { start, end, cut } => start == end && !cut,
            _ => false,
        };
        let want = wants.iter().find(|w| self.has(**w) && !empty(**w))?;
        let text = Some(want).filter(whole).map(|w| self.text_of(*w))?;
        (!text.is_empty() && text.len() <= max && !text.contains('\0')).then_some(text)
    }

    /// A whole number.
    pub fn int(&self, want: Want) -> Option<u64> {
        match self.value(want) {
            Value::Int(n) => Some(n),
            _ => None,
        }
    }

    /// How much work an array or a number stands for; `None` where the fields
    /// are not there.
    pub fn count(&self, wants: &[Want]) -> Option<u64> {
        wants.iter().find_map(|want| match self.value(*want) {
            Value::Int(n) => Some(n),
            Value::Count(n) => Some(n.into()),
            _ => None,
        })
    }
}

/// The memory that reading takes: about 180 KiB, meant to be static and hardly
/// touched.
#[repr(C)] // what is always used comes first, on few pages
pub struct Room {
    values: [Value; Want::ALL.len()],
    window: [u8; WINDOW],
    arena: [u8; ARENA],
}

impl Room {
    /// Zeroed memory.
    pub const fn new() -> Room {
        Room { values: [Value::Absent; Want::ALL.len()], window: [0; WINDOW], arena: [0; ARENA] }
    }

    /// The buffer, for reading on behind the payload.
    pub fn window(&mut self) -> &mut [u8] {
        &mut self.window
    }
}

impl Default for Room {
    fn default() -> Self {
        Room::new()
    }
}

/// Reads one payload. `fill` puts more bytes into the buffer it is given and
/// says how many; 0 is the end.
pub fn read<'b>(
    room: &'b mut Room,
    fill: &mut dyn FnMut(&mut [u8]) -> usize,
) -> Result<Payload<'b>, Refused> {
    let Room { window, values, arena } = room;
    values.fill(Value::Absent);
    let mut reader = Reader { window, at: 0, len: 0, total: 0, fill, arena, used: 0, values };
    match reader.space() {
        Ok(b'{') => reader.object(&mut [0; 64], 0, 0)?,
        Ok(_) => return Err(Refused::Malformed),
        Err(Refused::Short) => return Err(Refused::Empty),
        Err(refused) => return Err(refused),
    }
    Ok(Payload { values, arena })
}

struct Reader<'r> {
    window: &'r mut [u8; WINDOW],
    at: usize,
    len: usize,
    total: u64,
    fill: &'r mut dyn FnMut(&mut [u8]) -> usize,
    arena: &'r mut [u8],
    used: usize,
    values: &'r mut [Value; Want::ALL.len()],
}

impl Reader<'_> {
    /// Gets the next bytes into the window; the old ones are used up.
    fn more(&mut self) -> Result<(), Refused> {
        let n = (self.fill)(self.window).min(WINDOW);
        if n == 0 {
            return Err(Refused::Short);
        }
        self.total += n as u64;
        if self.total > MAX_PAYLOAD {
            return Err(Refused::TooLong);
        }
        (self.at, self.len) = (0, n);
        Ok(())
    }

    fn peek(&mut self) -> Result<u8, Refused> {
        while self.at >= self.len {
            self.more()?;
        }
        Ok(self.window[self.at])
    }

    fn next(&mut self) -> Result<u8, Refused> {
        let byte = self.peek()?;
        self.at += 1;
        Ok(byte)
    }

    /// Passes white space and takes the byte after it.
    fn space(&mut self) -> Result<u8, Refused> {
        loop {
            match self.next()? {
                b' ' | b'\t' | b'\n' | b'\r' => {}
                byte => return Ok(byte),
            }
        }
    }

    /// Reads the members of an object whose brace was taken. The path so far,
    /// with its last dot, is `path[..len]`.
    fn object(&mut self, path: &mut [u8; 64], len: usize, level: usize) -> Result<(), Refused> {
        let mut byte = self.space()?;
        if byte == b'}' {
            return Ok(());
        }
        loop {
            if byte != b'"' {
                return Err(Refused::Malformed);
            }
            let room = path.get_mut(len..).unwrap_or(&mut []);
            let Text { len: name, cut, odd } = self.text(room)?;
            if self.space()? != b':' {
                return Err(Refused::Malformed);
            }
            let first = self.space()?;
            let end = len + name;
            // Dots and brackets are ours, between the keys of a path.
            let ours = |b: &u8| matches!(b, b'.' | b'[');
            let whole = !cut && !odd && !path.get(len..end).is_some_and(|k| k.iter().any(ours));
            let known = |full: &[u8]| Want::ALL.iter().find(|(_, p)| *p == full).map(|(w, _)| *w);
            let want = path.get(..end).filter(|_| whole).and_then(known);
            let inside = |full: &[u8]| {
                Want::ALL
                    .iter()
                    .any(|(_, p)| p.strip_prefix(full).is_some_and(|rest| rest.starts_with(b".")))
            };
            if want.is_some_and(|want| self.values[want as usize] != Value::Absent) {
                return Err(Refused::Duplicate);
            }
            let enter =
                first == b'{' && whole && level < MAX_LEVELS && end < 64 && inside(&path[..end]);
            let element = match path.get_mut(end..end + 3) {
                Some(room) if first == b'[' && whole && want.is_none() => {
                    room.copy_from_slice(b"[0]");
                    known(&path[..end + 3])
                }
                _ => None,
            };
            if enter {
                if let Some(want) = want {
                    self.values[want as usize] = Value::Odd;
                }
                path[end] = b'.';
                self.object(path, end + 1, level + 1)?;
            } else if let Some(want) = want {
                let value = self.wanted(first, want.max())?;
                self.values[want as usize] = value;
            } else if let Some(want) = element {
                if self.values[want as usize] != Value::Absent {
                    return Err(Refused::Duplicate);
                }
                let value = self.first_element(want.max())?;
                self.values[want as usize] = value;
            } else {
                self.skip(first)?;
            }
            byte = self.space()?;
            match byte {
                b',' => byte = self.space()?,
                b'}' => return Ok(()),
                _ => return Err(Refused::Malformed),
            }
        }
    }

    /// Reads a wanted value that begins with `first`.
    fn wanted(&mut self, first: u8, max: usize) -> Result<Value, Refused> {
        match first {
            b'"' => {
                let start = self.used;
                // The arena is lent out while the reader goes on; an error ends
                // both.
                let arena = core::mem::take(&mut self.arena);
                let room = arena.get_mut(start..start + max).unwrap_or(&mut []);
                let Text { len, cut, odd } = self.text(room)?;
                let odd = odd || room.get(..len).is_none_or(|kept| kept.contains(&0));
                self.arena = arena;
                if odd {
                    return Ok(Value::Odd);
                }
                self.used = start + len;
                Ok(Value::Text { start: start as u32, end: self.used as u32, cut })
            }
            b'[' => self.elements().map(Value::Count),
            b'0'..=b'9' | b'-' => {
                let mut number =
                    Some(u64::from(first.wrapping_sub(b'0'))).filter(|_| first != b'-');
                loop {
                    match self.peek()? {
                        digit @ b'0'..=b'9' => {
                            number = number
                                .and_then(|n| n.checked_mul(10))
                                .and_then(|n| n.checked_add(u64::from(digit - b'0')));
                        }
                        b'+' | b'-' | b'.' | b'e' | b'E' => number = None,
                        _ => return Ok(number.map_or(Value::Odd, Value::Int)),
                    }
                    self.at += 1;
                }
            }
            b'n' | b'f' => self.skip(first).map(|()| Value::Nothing),
            b't' => self.skip(first).map(|()| Value::True),
            _ => self.skip(first).map(|()| Value::Odd),
        }
    }

    /// Counts the elements of an array whose bracket was taken.
    fn elements(&mut self) -> Result<u32, Refused> {
        let byte = self.space()?;
        if byte == b']' {
            return Ok(0);
        }
        self.skip(byte)?;
        Ok(1 + self.further_elements()?)
    }

    /// Reads the first element of an array whose bracket was taken, and passes
    /// over the others. An empty array says nothing.
    fn first_element(&mut self, max: usize) -> Result<Value, Refused> {
        let byte = self.space()?;
        if byte == b']' {
            return Ok(Value::Nothing);
        }
        let value = self.wanted(byte, max)?;
        self.further_elements()?;
        Ok(value)
    }

    /// Counts the elements behind one, to the end of the array.
    fn further_elements(&mut self) -> Result<u32, Refused> {
        let mut count = 0;
        loop {
            match self.space()? {
                b',' => {
                    let byte = self.space()?;
                    self.skip(byte)?;
                    count += 1;
                }
                b']' => return Ok(count),
                _ => return Err(Refused::Malformed),
            }
        }
    }

    /// Passes over a value that begins with `first`.
    fn skip(&mut self, first: u8) -> Result<(), Refused> {
        match first {
            b'"' => self.skip_string(),
            b'{' | b'[' => self.skip_nested(),
            b'0'..=b'9' | b'-' | b't' | b'f' | b'n' => {
                while !matches!(self.peek()?, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r') {
                    self.at += 1;
                }
                Ok(())
            }
            _ => Err(Refused::Malformed),
        }
    }

    fn skip_nested(&mut self) -> Result<(), Refused> {
        let mut depth = 1u64;
        loop {
            while self.at >= self.len {
                self.more()?;
            }
            let rest = &self.window[self.at..self.len];
            let Some(hit) = rest.iter().position(|b| matches!(b, b'"' | b'{' | b'[' | b'}' | b']'))
            else {
                self.at = self.len;
                continue;
            };
            self.at += hit + 1;
            match rest[hit] {
                b'"' => self.skip_string()?,
                b'{' | b'[' => depth += 1,
                _ => depth -= 1,
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Passes over a string whose quote was taken: to the next quote, then
    /// backwards over the backslashes before it. An even number of them leaves
    /// it a closing quote.
    fn skip_string(&mut self) -> Result<(), Refused> {
        // Whether the window before ended in an odd run of backslashes.
        let mut carried = false;
        loop {
            while self.at >= self.len {
                self.more()?;
            }
            let rest = &self.window[self.at..self.len];
            let quote = memchr(b'"', rest);
            let run = &rest[..quote.unwrap_or(rest.len())];
            let slashes = run.iter().rev().take_while(|b| **b == b'\\').count();
            let odd = (slashes % 2 == 1) ^ (carried && slashes == run.len());
            match quote {
                Some(at) => {
                    self.at += at + 1;
                    carried = false;
                    if !odd {
                        return Ok(());
                    }
                }
                None => {
                    self.at = self.len;
                    carried = odd;
                }
            }
        }
    }

    /// Reads a string whose quote was taken into `out`, unescaped, up to what
    /// fits; the rest is passed over.
    fn text(&mut self, out: &mut [u8]) -> Result<Text, Refused> {
        let mut len = 0;
        let mut cut = false;
        let mut odd = false;
        let mut put = |bytes: &[u8]| match out.get_mut(len..len + bytes.len()) {
            Some(room) if !cut => {
                room.copy_from_slice(bytes);
                len += bytes.len();
            }
            _ => cut = true,
        };
        loop {
            match self.next()? {
                b'"' => break,
                b'\\' => match self.next()? {
                    b'b' => put(b"\x08"),
                    b'f' => put(b"\x0c"),
                    b'n' => put(b"\n"),
                    b'r' => put(b"\r"),
                    b't' => put(b"\t"),
                    b'u' => match self.escaped_char()? {
                        Some(c) => put(c.encode_utf8(&mut [0; 4]).as_bytes()),
                        None => odd = true,
                    },
                    byte @ (b'"' | b'\\' | b'/') => put(&[byte]),
                    _ => return Err(Refused::Malformed),
                },
                byte if byte < 0x20 => return Err(Refused::Malformed),
                byte => put(&[byte]),
            }
        }
        // Cut at a character boundary; anything else amiss is not text.
        let kept = out.get(..len).unwrap_or(b"");
        if let Err(e) = core::str::from_utf8(kept) {
            let torn = cut && e.error_len().is_none();
            if torn { len = e.valid_up_to() } else { odd = true }
        }
        Ok(Text { len, cut, odd })
    }

    /// The character of `\uXXXX`, two of them for a surrogate pair; `None` for
    /// half a pair.
    fn escaped_char(&mut self) -> Result<Option<char>, Refused> {
        let high = self.hex4()?;
        if !(0xd800..0xdc00).contains(&high) {
            return Ok(char::from_u32(high));
        }
        if self.peek()? != b'\\' {
            return Ok(None);
        }
        self.at += 1;
        if self.next()? != b'u' {
            // `\uD800\n`: the second escape was some other one; the text is odd
            // in any case, so its character does not matter.
            return Ok(None);
        }
        let low = self.hex4()?;
        let pair = 0x10000 + ((high - 0xd800) << 10) + (low & 0x3ff);
        Ok(char::from_u32(pair).filter(|_| (0xdc00..0xe000).contains(&low)))
    }

    fn hex4(&mut self) -> Result<u32, Refused> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = char::from(self.next()?).to_digit(16).ok_or(Refused::Malformed)?;
            value = value * 16 + digit;
        }
        Ok(value)
    }
}

/// What reading a string gave.
struct Text {
    len: usize,
    cut: bool,
    odd: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a payload that arrives in pieces of this size.
    fn read_in(json: &[u8], piece: usize) -> Result<Vec<Value>, Refused> {
        let mut room = Box::new(Room::new());
        let mut rest = json;
        let payload = read(&mut room, &mut |buffer| {
            let n = rest.len().min(piece).min(buffer.len());
            buffer[..n].copy_from_slice(&rest[..n]);
            rest = &rest[n..];
            n
        })?;
        let mut all = payload.values.to_vec();
        // Texts as their contents, so that runs can be compared.
        all.push(Value::Count(payload.text(&[Want::Cwd]).len() as u32));
        Ok(all)
    }

    #[test]
    fn pieces_of_any_size_give_the_same() {
        let json = br#" {"x":{"a":["\"\\\\\"}",{"b":"]\\"}],"cwd":"no"},"cwd":"\/a\u00e9\ud83d\ude00\\","ctx":{"sessionId":"s","deep":{"sessionId":3}},
            "background_tasks":[{"a":[1,2]},"]",3],"pid":42,"sequence":-1,"error":null,"y":"tail\\\\\\\""} trailing"#;
        let whole = read_in(json, usize::MAX).unwrap();
        assert_eq!(whole[Want::BackgroundTasks as usize], Value::Count(3));
        assert_eq!(whole[Want::Pid as usize], Value::Int(42));
        assert_eq!(whole[Want::Sequence as usize], Value::Odd);
        assert_eq!(whole[Want::Error as usize], Value::Nothing);
        assert_eq!(whole.last(), Some(&Value::Count("/aé😀\\".len() as u32)));
        for piece in 1..40 {
            assert_eq!(read_in(json, piece).unwrap(), whole, "pieces of {piece}");
        }
        for end in 0..json.len() - " trailing".len() {
            assert!(
                matches!(read_in(&json[..end], 7), Err(Refused::Short | Refused::Empty)),
                "{end}"
            );
        }
    }

    #[test]
    fn a_wanted_key_that_stands_twice_refuses_even_when_escaped() {
        assert_eq!(read_in(br#"{"cwd":"/a","cwd":"/b"}"#, 9).err(), Some(Refused::Duplicate));
        assert_eq!(read_in(br#"{"cwd":null,"\u0063wd":"/b"}"#, 9).err(), Some(Refused::Duplicate));
        assert!(read_in(br#"{"zzz":1,"zzz":2}"#, 9).is_ok());
    }

    #[test]
    fn the_first_of_an_array_and_both_a_value_and_its_inside_can_be_wanted() {
        for (json, root) in [
            (r#"{"workspace_roots":["/a","/b"]}"#, Some("/a")),
            (r#"{"workspace_roots" : [ "/a" ] }"#, Some("/a")),
            (r#"{"workspace_roots":[],"cwd":""}"#, None),
            (r#"{"workspace_roots":[null,"/b"]}"#, None),
            (r#"{"workspace_roots":[{"a":["]"]},"/b"]}"#, None),
            (r#"{"workspace_roots":"/a"}"#, None),
            (r#"{"workspace_roots[0]":"/a"}"#, None),
            (r#"{"x":{"workspace_roots":["/a"]}}"#, None),
            (r#"{"cwd":"/c","workspace_roots":["/a"]}"#, Some("/c")),
            (r#"{"cwd":7,"workspace_roots":["/a"]}"#, None),
        ] {
            let mut room = Box::new(Room::new());
            let mut rest = json.as_bytes();
            let payload =
                read(&mut room, &mut |b| std::io::Read::read(&mut rest, b).unwrap()).unwrap();
            assert_eq!(payload.id(&[Want::Cwd, Want::WorkspaceRoot], 4096), root, "{json}");
        }
        let twice = br#"{"workspace_roots":["/a"],"workspace_roots":["/b"]}"#;
        assert_eq!(read_in(twice, 9).err(), Some(Refused::Duplicate));
        assert_eq!(
            read_in(br#"{"error":{"name":"x"},"error":1}"#, 9).err(),
            Some(Refused::Duplicate)
        );
        assert!(read_in(br#"{"workspace_roots":["/a" "/b"]}"#, 9).is_err());

        let json =
            br#"{"error":{"name":"Oops","stack":"at x"},"event":{"type":"t"},"recoverable":true}"#;
        let mut room = Box::new(Room::new());
        let mut rest = &json[..];
        let payload = read(&mut room, &mut |b| std::io::Read::read(&mut rest, b).unwrap()).unwrap();
        assert_eq!(payload.text(&[Want::Error, Want::ErrorName]), "Oops");
        assert_eq!(payload.text(&[Want::EventName, Want::EventType]), "t");
        assert!(payload.is_set(Want::Recoverable) && !payload.is_set(Want::Error));
        assert_eq!(payload.mark(&[Want::Recoverable]), "true");
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for (json, want) in [
            (&b""[..], Refused::Empty),
            (b" \n", Refused::Empty),
            (b"[]", Refused::Malformed),
            (b"\"x\"", Refused::Malformed),
            (b"{1:2}", Refused::Malformed),
            (b"{\"cwd\" 1}", Refused::Malformed),
            (b"{\"cwd\":}", Refused::Malformed),
            (b"{\"cwd\":\"\n\"}", Refused::Malformed),
            (b"\xef\xbb\xbf{}", Refused::Malformed),
        ] {
            assert_eq!(read_in(json, 5).err(), Some(want), "{json:?}");
        }
    }

    #[test]
    fn long_text_is_cut_at_a_character_and_odd_text_is_none() {
        let mut room = Box::new(Room::new());
        let json = format!("{{\"cwd\":\"{}\",\"tool_name\":\"\\ud800\"}}", "é".repeat(3000));
        let mut rest = json.as_bytes();
        let payload = read(&mut room, &mut |b| std::io::Read::read(&mut rest, b).unwrap()).unwrap();
        assert_eq!(payload.text(&[Want::Cwd]), "é".repeat(2048));
        assert_eq!(payload.id(&[Want::Cwd], usize::MAX), None);
        assert_eq!(payload.text(&[Want::ToolName]), "");
        assert!(payload.has(Want::ToolName));
    }
}
