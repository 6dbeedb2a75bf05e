//! Arithmetic over counts, as text and as a tree.
//!
//! ```text
//! sum     = product (('+' | '-') product)*
//! product = factor (('*' | '/') factor)*
//! factor  = '-' factor | number | name | '(' sum ')' | ('min' | 'max') '(' sum (',' sum)* ')'
//!         | 'if' '(' sum '>' sum ',' sum ',' sum ')'
//! number  = digits ['.' digits]
//! name    = letter or '_', then letters, digits, '_', '.'
//! ```

/// Nesting that no honest formula reaches; it keeps the parser's stack small.
const MAX_DEPTH: usize = 64;
/// Operands that no honest formula reaches; a chain of operators makes a tree
/// as deep as it is long.
const MAX_NODES: usize = 512;

/// What a name in an expression stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// The event with this index in the catalogue.
    Event(usize),
    /// The formula with this index in the catalogue.
    Formula(usize),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    Number(f64),
    Name(Name),
    Negate(Box<Expression>),
    Add(Box<[Expression; 2]>),
    Subtract(Box<[Expression; 2]>),
    Multiply(Box<[Expression; 2]>),
    Divide(Box<Division>),
    Min(Vec<Expression>),
    Max(Vec<Expression>),
    /// If the first is greater than the second: the third, else the fourth.
    If(Box<[Expression; 4]>),
}

/// One expression divided by another.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Division {
    /// Numerator and divisor.
    pub(super) sides: [Expression; 2],
    /// Events whose counts the two sides compare; none if one side is free of
    /// counts, which makes the division part of whatever surrounds it.
    pub(super) compared: Vec<usize>,
    /// Groups that take all of them together.
    pub(super) groups: Vec<usize>,
}

/// Why a text is no expression, and the byte at which that shows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) at: usize,
    pub(super) reason: String,
}

/// Reads an expression; `resolve` says what a name stands for.
pub(super) fn parse(
    text: &str,
    resolve: &dyn Fn(&str) -> Result<Name, String>,
) -> Result<Expression, Refusal> {
    let mut parser = Parser { text, at: 0, depth: 0, nodes: 0, resolve };
    let expression = parser.sum()?;
    match parser.peek() {
        None => Ok(expression),
        Some(other) => Err(parser.refuse(format!("expected an operator, found '{other}'"))),
    }
}

/// Is it a name that an expression could hold?
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(in_name)
        && !["min", "max", "if"].contains(&text)
}

fn in_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '.'
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    nodes: usize,
    resolve: &'a dyn Fn(&str) -> Result<Name, String>,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next character that is no blank; the parser then stands before it.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        if there {
            self.at += wanted.len_utf8();
        }
        there
    }

    fn take_while(&mut self, wanted: fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn refuse(&self, reason: impl Into<String>) -> Refusal {
        Refusal { at: self.at, reason: reason.into() }
    }

    fn need(&mut self, wanted: char) -> Result<(), Refusal> {
        if self.take(wanted) {
            return Ok(());
        }
        let found = self.peek().map_or("the end".to_owned(), |other| format!("'{other}'"));
        Err(self.refuse(format!("expected '{wanted}', found {found}")))
    }

    fn sum(&mut self) -> Result<Expression, Refusal> {
        let mut left = self.product()?;
        loop {
            left = if self.take('+') {
                Expression::Add(Box::new([left, self.product()?]))
            } else if self.take('-') {
                Expression::Subtract(Box::new([left, self.product()?]))
            } else {
                return Ok(left);
            };
        }
    }

    fn product(&mut self) -> Result<Expression, Refusal> {
        let mut left = self.factor()?;
        loop {
            left = if self.take('*') {
                Expression::Multiply(Box::new([left, self.factor()?]))
            } else if self.take('/') {
                let sides = [left, self.factor()?];
                let (compared, groups) = (Vec::new(), Vec::new());
                Expression::Divide(Box::new(Division { sides, compared, groups }))
            } else {
                return Ok(left);
            };
        }
    }

    fn factor(&mut self) -> Result<Expression, Refusal> {
        self.nodes += 1;
        if self.depth >= MAX_DEPTH || self.nodes > MAX_NODES {
            return Err(self.refuse("too long or too deeply nested"));
        }
        self.depth += 1;
        let factor = match self.peek() {
            Some('-') => {
                self.at += 1;
                Ok(Expression::Negate(Box::new(self.factor()?)))
            }
            Some('(') => {
                self.at += 1;
                let inner = self.sum()?;
                self.need(')')?;
                Ok(inner)
            }
            Some(digit) if digit.is_ascii_digit() => self.number(),
            Some(letter) if letter.is_ascii_alphabetic() || letter == '_' => self.named(),
            Some(other) => {
                Err(self.refuse(format!("expected a number, a name or '(', found '{other}'")))
            }
            None => Err(self.refuse("expected a number, a name or '(', found the end")),
        };
        self.depth -= 1;
        factor
    }

    fn number(&mut self) -> Result<Expression, Refusal> {
        let start = self.at;
        let digits = self.take_while(|c| c.is_ascii_digit() || c == '.');
        digits
            .parse()
            .map(Expression::Number)
            .map_err(|_| Refusal { at: start, reason: format!("'{digits}' is no number") })
    }

    fn named(&mut self) -> Result<Expression, Refusal> {
        let start = self.at;
        match self.take_while(in_name) {
            "min" => self.arguments().map(Expression::Min),
            "max" => self.arguments().map(Expression::Max),
            "if" => self.choice(),
            name => match (self.resolve)(name) {
                Ok(name) => Ok(Expression::Name(name)),
                Err(reason) => Err(Refusal { at: start, reason }),
            },
        }
    }

    fn choice(&mut self) -> Result<Expression, Refusal> {
        self.need('(')?;
        let left = self.sum()?;
        self.need('>')?;
        let right = self.sum()?;
        self.need(',')?;
        let then = self.sum()?;
        self.need(',')?;
        let other = self.sum()?;
        self.need(')')?;
        Ok(Expression::If(Box::new([left, right, then, other])))
    }

    fn arguments(&mut self) -> Result<Vec<Expression>, Refusal> {
        self.need('(')?;
        let mut arguments = vec![self.sum()?];
        while self.take(',') {
            arguments.push(self.sum()?);
        }
        self.need(')')?;
        Ok(arguments)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(name: &str) -> Result<Name, String> {
        match name.strip_prefix('E').and_then(|digits| digits.parse().ok()) {
            Some(index) => Ok(Name::Event(index)),
            None => Err(format!("unknown name '{name}'")),
        }
    }

    fn number(value: f64) -> Expression {
        Expression::Number(value)
    }

    #[test]
    fn products_bind_tighter_and_all_operators_go_from_left_to_right() {
        let parsed = parse("1 - 2 * E3 - 4", &events).unwrap();
        let product =
            Expression::Multiply(Box::new([number(2.0), Expression::Name(Name::Event(3))]));
        let first = Expression::Subtract(Box::new([number(1.0), product]));
        assert_eq!(parsed, Expression::Subtract(Box::new([first, number(4.0)])));
    }

    #[test]
    fn refusals_say_where_and_what() {
        let refused = |text| {
            let refusal = parse(text, &events).unwrap_err();
            (refusal.at, refusal.reason)
        };
        assert_eq!(refused("1 + X"), (4, "unknown name 'X'".into()));
        assert_eq!(refused("(1"), (2, "expected ')', found the end".into()));
        assert_eq!(refused("1 2"), (2, "expected an operator, found '2'".into()));
        assert_eq!(refused("1..2"), (0, "'1..2' is no number".into()));
        assert_eq!(refused("*"), (0, "expected a number, a name or '(', found '*'".into()));
        assert_eq!(refused("max 1"), (4, "expected '(', found '1'".into()));
    }

    #[test]
    fn endless_texts_are_refused_not_followed() {
        assert!(parse(&"(".repeat(100_000), &events).is_err());
        assert!(parse(&"-".repeat(100_000), &events).is_err());
        assert!(parse(&format!("1{}", "+1".repeat(100_000)), &events).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_panic(text in "([-+*/(),.> é]|[0-9]|E1|E2|min|max|if){0,40}") {
            let _ = parse(&text, &events);
        }
    }
}
