use crate::Kernel;
use crate::gf::inverse;

/// A repair symbol that waits.
#[derive(Debug, Default)]
struct Repair {
    first: u64,
    /// Of all that it covers.
    coefficients: Vec<u8>,
    data: Vec<u8>,
}

/// One equation: a mix of repair symbols that equals a sum of missing source symbols, and of known ones.
#[derive(Debug)]
struct Row {
    /// Coefficients of what is missing, by column.
    missing: Vec<u8>,
    /// Coefficients of the repair symbols, by their place.
    mix: Vec<u8>,
    /// The column that no other row has, and this one once.
    pivot: usize,
}

/// Repair symbols that cannot be used up yet, as equations in reduced row echelon form: as many
/// rows as repair symbols, each with a pivot. A row that has nothing but its pivot is solved.
///
/// What the known sources add is left out until something is found ([`in_sources`](Self::in_sources)).
#[derive(Debug, Default)]
pub(super) struct Equations {
    repairs: Vec<Repair>,
    /// Storage of repair symbols that are gone.
    spare: Vec<Repair>,
    rows: Vec<Row>,
    /// The source symbol of each column.
    columns: Vec<u64>,
}

impl Equations {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The data of the repair symbols, by their place.
    pub(super) fn repairs(&self) -> impl Iterator<Item = &[u8]> {
        self.repairs.iter().map(|repair| repair.data.as_slice())
    }

    /// From the first source symbol that any repair symbol covers to after the last.
    pub(super) fn covered(&self) -> (u64, u64) {
        let first = self.repairs.iter().map(|repair| repair.first).min().unwrap_or(0);
        let end = self.repairs.iter().map(|repair| repair.first + repair.coefficients.len() as u64).max().unwrap_or(0);
        (first, end)
    }

    /// How the row is mixed from repair symbols, by their place.
    pub(super) fn mix(&self, row: usize) -> &[u8] {
        &self.rows[row].mix
    }

    /// Rows that have only one thing missing, and which source symbol that is.
    pub(super) fn solved(&self) -> impl Iterator<Item = (usize, u64)> {
        let is_solved = |row: &Row| row.missing.iter().enumerate().all(|(column, &it)| it == 0 || column == row.pivot);
        let solved = self.rows.iter().enumerate().filter(move |(_, row)| is_solved(row));
        solved.map(|(place, row)| (place, self.columns[row.pivot]))
    }

    /// Appends the coefficients of the source symbols `known`, in order, as the row has them; `first` as in
    /// [`covered`](Self::covered). `sum` is a buffer.
    pub(super) fn in_sources(&self, row: usize, known: &[u64], first: u64, sum: &mut Vec<u8>, out: &mut Vec<u8>) {
        let (_, end) = self.covered();
        sum.clear();
        sum.resize((end - first) as usize, 0);
        for (repair, &share) in self.repairs.iter().zip(&self.rows[row].mix) {
            let at = (repair.first - first) as usize;
            Kernel::best().add_multiple(&mut sum[at..], &repair.coefficients, share);
        }
        out.extend(known.iter().map(|&id| sum[(id - first) as usize]));
    }

    /// Takes a repair symbol that covers `coefficients` from `first` on, of which `missing` are not
    /// there. False if it adds nothing to what is known.
    pub(super) fn add(
        &mut self,
        first: u64,
        coefficients: &[u8],
        missing: impl Iterator<Item = u64>,
        data: &[u8],
    ) -> bool {
        let columns = self.columns.len();
        let mut row = vec![0; columns];
        for id in missing {
            let coefficient = coefficients[(id - first) as usize];
            match self.columns.iter().position(|&column| column == id) {
                Some(column) => row[column] = coefficient,
                None if coefficient == 0 => {}
                None => {
                    self.columns.push(id);
                    row.push(coefficient);
                }
            }
        }
        for it in &mut self.rows {
            it.missing.resize(row.len(), 0);
        }
        let mut mix = vec![0; self.repairs.len() + 1];
        mix[self.repairs.len()] = 1;
        for it in &self.rows {
            let share = row[it.pivot];
            add(&mut row, &it.missing, share);
            add(&mut mix, &it.mix, share);
        }
        if row.iter().all(|&it| it == 0) {
            return false; // It brought no new column, or it would not be.
        }
        for it in &mut self.rows {
            it.mix.push(0);
        }
        let mut repair = self.spare.pop().unwrap_or_default();
        repair.first = first;
        repair.coefficients.clear();
        repair.coefficients.extend_from_slice(coefficients);
        repair.data.clear();
        repair.data.extend_from_slice(data);
        self.repairs.push(repair);
        self.rows.push(Row { missing: row, mix, pivot: 0 });
        self.choose_pivot(self.rows.len() - 1);
        true
    }

    /// Chooses a pivot for the row, and eliminates it from all others. The row must have something
    /// missing.
    fn choose_pivot(&mut self, row: usize) {
        let mut it = self.rows.swap_remove(row);
        if let Some(pivot) = it.missing.iter().position(|&it| it != 0) {
            let factor = inverse(it.missing[pivot]);
            scale(&mut it.missing, factor);
            scale(&mut it.mix, factor);
            it.pivot = pivot;
            for other in &mut self.rows {
                let share = other.missing[pivot];
                add(&mut other.missing, &it.missing, share);
                add(&mut other.mix, &it.mix, share);
            }
        }
        self.rows.push(it);
    }

    /// Returns `true` if the source symbol `id` is missing in some repair symbol.
    pub(super) fn misses(&self, id: u64) -> bool {
        self.columns.contains(&id)
    }

    /// The source symbol `id` is there now.
    pub(super) fn found(&mut self, id: u64) {
        let Some(column) = self.columns.iter().position(|&it| it == id) else { return };
        self.columns.swap_remove(column);
        let moved = self.columns.len();
        let mut without = None;
        for (place, row) in self.rows.iter_mut().enumerate() {
            row.missing.swap_remove(column);
            if row.pivot == column {
                without = Some(place);
            } else if row.pivot == moved {
                row.pivot = column;
            }
        }
        let Some(row) = without else { return };
        if self.rows[row].missing.iter().all(|&it| it == 0) {
            // It says nothing any more; one repair symbol can be expressed by the others.
            let repair = self.rows[row].mix.iter().position(|&it| it != 0).unwrap_or(0);
            self.drop_repair(repair, row);
        } else {
            self.choose_pivot(row);
        }
    }

    /// Takes a repair symbol out of all equations, at the cost of `row`, which has it.
    fn drop_repair(&mut self, repair: usize, row: usize) {
        let gone = self.rows.swap_remove(row);
        let factor = inverse(gone.mix[repair]);
        for other in &mut self.rows {
            let share = crate::gf::mul(other.mix[repair], factor);
            add(&mut other.missing, &gone.missing, share);
            add(&mut other.mix, &gone.mix, share);
            other.mix.swap_remove(repair);
        }
        self.spare.push(self.repairs.swap_remove(repair));
        self.drop_empty_columns();
    }

    /// Takes out columns that no row has any more.
    fn drop_empty_columns(&mut self) {
        for column in (0..self.columns.len()).rev() {
            if self.rows.iter().all(|row| row.missing[column] == 0) {
                self.columns.swap_remove(column);
                let moved = self.columns.len();
                for row in &mut self.rows {
                    row.missing.swap_remove(column);
                    if row.pivot == moved {
                        row.pivot = column;
                    }
                }
            }
        }
    }

    /// Takes the source symbol `id` out of the repair symbols that cover it, as it will not be at hand later.
    pub(super) fn absorb(&mut self, id: u64, symbol: &[u8]) {
        for repair in self.repairs.iter_mut().filter(|repair| repair.first <= id) {
            let at = (id - repair.first) as usize;
            let Some(coefficient) = repair.coefficients.get_mut(at).map(core::mem::take) else { continue };
            if repair.data.len() < symbol.len() {
                repair.data.resize(symbol.len(), 0);
            }
            Kernel::best().add_multiple(&mut repair.data, symbol, coefficient);
            // What is missing keeps its place: it may be found yet, and then has to be taken out as well.
            let gone = repair.coefficients.iter().take_while(|&&it| it == 0).count();
            repair.coefficients.drain(..gone);
            repair.first += gone as u64;
        }
    }

    /// Discards the repair symbol that covers the oldest.
    pub(super) fn give_up_oldest(&mut self) {
        let oldest = (0..self.repairs.len()).min_by_key(|&repair| self.repairs[repair].first);
        if let Some(repair) = oldest {
            self.give_up(repair);
        }
    }

    /// Discards the repair symbols that cover what is below `base`. Returns how many.
    pub(super) fn forget_below(&mut self, base: u64) -> u64 {
        let mut count = 0;
        while let Some(repair) = self.repairs.iter().position(|repair| repair.first < base) {
            self.give_up(repair);
            count += 1;
        }
        count
    }

    fn give_up(&mut self, repair: usize) {
        if let Some(row) = self.rows.iter().position(|row| row.mix[repair] != 0) {
            self.drop_repair(repair, row);
        }
    }
}

fn add(sum: &mut [u8], row: &[u8], factor: u8) {
    Kernel::best().add_multiple(sum, row, factor);
}

fn scale(row: &mut [u8], factor: u8) {
    row.iter_mut().for_each(|it| *it = crate::gf::mul(*it, factor));
}
